/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A processor as the walker sees it: a register file numbered as DWARF numbers it, and a few
 * facts about it. All architectures are compiled everywhere and chosen at run time, so that a
 * still recorded on one machine can be walked on another.
 *
 * To add one, six places: arch_NAME.c; the host's files, which the build chooses (frozen/host_NAME.h,
 * frozen/signal/context_NAME.c, os/linux/user_regs_NAME.c); the list below; meson.build; tests/unit/test_walk_NAME.c with
 * recorded stills; and docs/architectures.md.
 */
#ifndef SF_FROZEN_ARCH_H
#define SF_FROZEN_ARCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* X(name): all architectures. SF_HOST is the one for which this is compiled; frozen/raw.h includes SF_HOST_HEADER. */
#define SF_ARCHS(X) X(x86_64) X(aarch64)
#if defined(__x86_64__)
#define SF_HOST sf_arch_x86_64
#define SF_HOST_HEADER "frozen/host_x86_64.h"
#elif defined(__aarch64__)
#define SF_HOST sf_arch_aarch64
#define SF_HOST_HEADER "frozen/host_aarch64.h"
#endif

#define SF_MAX_REGS 33
#define SF_MAX_SAVED 12
#define SF_NO_REG 255

struct sf_reader;

/* How a function that keeps a frame pointer begins, from its code. */
struct sf_prologue {
	uint64_t start;    /* its first instruction: what a call of it names */
	uint32_t size;     /* bytes that it takes off sp after the frame pointer was set, at
			    * least */
	bool     is_fixed; /* these are all, and nothing up to pc looks as if it took more
			    * (alloca) */
};

/* How the function at a pc is left, from its code. */
struct sf_exit {
	bool is_by_fp;           /* the frame pointer leads to the frame record */
	bool is_ahead;           /* ... or to half of the record of the function that is called next: this one's frame pointer is there */
	uint8_t behind;          /* ... else, if not 0: it is the caller's already, and the record ends where this register leads */
	bool is_half;            /* else: the caller has made half of the record, with its frame pointer; the register leads there */
	bool is_guess;           /* a jump to an unknown place is taken for a call of another function in place of a return */
	/* The return address is in the register `held`: the function takes its arguments from the stack, or (`has_given`) has done so. */
	bool is_held, has_given;
	uint8_t held;
	/* The function's old sp lies in its stack, which it has aligned: `kept_sp` bytes above sp. The next fields count from it. */
	bool is_kept;
	int32_t kept_sp;
	int32_t size;            /* bytes from sp to the return address */
	int32_t saved_fp;        /* ... and from sp to the caller's frame pointer; below 0: it is in the register */
	uint64_t jump;           /* of a guess: behind that jump. sp is `size` bytes further up there */
};

/* Whether `size` and sp are all that is needed to find the return address. */
static inline bool sf_exit_is_by_size(const struct sf_exit *exit)
{
	return !exit->is_by_fp && !exit->is_half && !exit->is_held && !exit->is_kept;
}

/* Where the handler's address is, at a place in a throw. */
struct sf_throw {
	uint8_t reg;    /* in this register; SF_NO_REG: on the stack, */
	uint8_t pushed; /* so many bytes above sp. Its code begins with sp behind it */
};

/*
 * The registers of one frame. r[] is indexed by DWARF number (x86-64: 0 rax ... 7 rsp ... 15 r15,
 * System V psABI figure 3.36; aarch64: 0 x0 ... 30 lr, 31 sp, AADWARF64 section 4.1).
 *
 * A register is only valid when its bit in `known` is set. In an outer frame these are the
 * callee-saved registers that its callees kept or saved. Of a blocked thread that was not
 * interrupted, few registers are known. pc is always valid. sp's bit is always set.
 */
struct sf_regs {
	uint64_t pc;
	uint64_t known;
	uint64_t r[SF_MAX_REGS];
};

#define SF_CALL_CODE 7   /* bytes before the pc of a thread in a system call that may show its number */
#define SF_PLT_ENTRY 16  /* bytes between two places at which plt_steps() looks */
#define SF_PLT_STEPS 3

/* From `at` bytes into a PLT section on, `pushed` bytes lie between sp and where sp was at the entry. */
struct sf_plt_step {
	size_t at;
	int32_t pushed;
};

struct sf_arch {
	const char *name;       /* as uname -m prints it */
	uint16_t    elf_machine;
	uint8_t     n_regs;
	uint8_t     sp, fp;     /* DWARF numbers */
	uint8_t     lr;         /* link register, or SF_NO_REG */
	uint8_t     result;     /* of a system call */
	uint8_t     return_column; /* the usual return address column of CIEs */
	uint8_t     red_zone;   /* bytes below sp that may still hold saved registers */
	uint8_t     n_saved;    /* callee-saved registers that rules keep, without sp */
	uint8_t     saved[SF_MAX_SAVED];
	uint8_t     syscall_args[6]; /* registers of a system call's arguments */
	uint8_t     syscall_size; /* bytes of the instruction */
	bool        signs_returns; /* return addresses may carry a signature (DW_CFA_AARCH64_negate_ra_state) */
	uint64_t    code_mask;  /* and-ed to a return address: takes off pointer authentication */
	const char *vdso_clock, *vdso_cpu; /* names in the vDSO of clock_gettime and getcpu; NULL: not there */

	/* Whether the code at pc is the kernel's signal return trampoline (its bytes say so). */
	bool (*is_sigreturn)(const struct sf_reader *reader, uint64_t pc);

	/* Replaces `regs`, which stand in the trampoline, by those that the signal interrupted. */
	bool (*sigreturn)(const struct sf_reader *reader, struct sf_regs *regs);
	uint16_t sigframe_size; /* bytes from sp that sigreturn needs */

	/* Whether the instruction at pc is a system call. */
	bool (*is_system_call)(const struct sf_reader *reader, uint64_t pc);

	/* The number that the code before the pc of a thread in a system call loads; -1: not shown. May be NULL. */
	int32_t (*loaded_syscall)(const uint8_t code[SF_CALL_CODE]);

	/*
	 * How the code at `at` in a PLT section, a multiple of SF_PLT_ENTRY, moves sp: fills ret in rising order, returns
	 * how many steps. `size` bytes are at `section`.
	 */
	unsigned (*plt_steps)(const uint8_t *section, size_t size, size_t at,
			      struct sf_plt_step ret[SF_PLT_STEPS]);

	/*
	 * For code without unwind rules. Whether the instruction before pc is a call, as it is
	 * before every return address; *target_ret: where a direct call goes, 0 for an indirect
	 * one.
	 */
	bool (*is_behind_call)(const struct sf_reader *reader, uint64_t pc, uint64_t *target_ret);

	/*
	 * Whether the instruction at pc runs before the function has made its frame, or after it has
	 * removed the frame. *pushed_ret: the bytes between sp and the return address. With a link
	 * register it is 0, and the return address is in that register.
	 */
	bool (*is_frame_edge)(const struct sf_reader *reader, uint64_t pc, uint8_t *pushed_ret);

	/* How the function at pc is left. False: its code does not show it. NULL: no code is read for that. */
	bool (*find_exit)(const struct sf_reader *reader, uint64_t pc, struct sf_exit *ret);

	/*
	 * Whether the function at pc keeps its old sp in a register, and takes it back further on: the register's DWARF number,
	 * and the pc behind that. NULL: no code is read for that.
	 */
	bool (*find_kept_sp)(const struct sf_reader *reader, uint64_t pc, unsigned *reg_ret, uint64_t *behind_ret);

	/*
	 * The place of code that is left as all code of a language is in which threads have such registers: it leaves sp alone. At
	 * least so many bytes lie between sp and the return address. May be NULL.
	 */
	bool (*common_code)(const struct sf_reader *reader, const struct sf_regs *regs, uint64_t *pc_ret, int32_t *least_ret);

	/*
	 * Whether the code before pc sets sp to another stack, and then calls. `exact`: whether the thread stands at pc, near
	 * that call; else pc is behind it. *gives_up_ret: the call does not return, but for an error. NULL: no code is read for
	 * that.
	 */
	bool (*switches_stack)(const struct sf_reader *reader, uint64_t pc, bool exact, bool *gives_up_ret);

	/*
	 * The first direct call of `target` in the code from `start` up to `end`, or (`or_jumps`) of code that jumps there: the address
	 * behind it, or 0. NULL: no code is read for that.
	 */
	uint64_t (*find_call)(const struct sf_reader *reader, uint64_t start, uint64_t end, uint64_t target, bool or_jumps);

	/*
	 * Whether the code before the call behind which pc is sets the frame pointer to 0, as that of a thread's first function
	 * does.
	 */
	bool (*clears_fp)(const struct sf_reader *reader, uint64_t pc);

	/*
	 * Whether pc is behind the call by which one of musl's first functions calls on, by its exact code. NULL: no
	 * code is read for that.
	 */
	bool (*is_first_call)(const struct sf_reader *reader, uint64_t pc);

	/*
	 * Whether the instructions before pc take words from the stack into registers, the n-th last one into `reg`. So
	 * `reg` holds the word that is n words below sp. NULL: no code is read for that.
	 */
	bool (*has_popped)(const struct sf_reader *reader, uint64_t pc, unsigned reg, unsigned n);

	/*
	 * For code whose rules describe no epilogues: whether regs->pc is in one, of a function whose jumps from
	 * `start` up to `end` do not leave it. Then the registers become what they are at the return. NULL: no code is
	 * read for that.
	 */
	bool (*follow_epilogue)(const struct sf_reader *memory, uint64_t start, uint64_t end, struct sf_regs *regs);

	/*
	 * Whether a thread at pc throws, and sp leads to the handler's record already: the rules of the function that throws do not
	 * hold for that sp. NULL: no code is read for that.
	 */
	bool (*is_in_throw)(const struct sf_reader *reader, uint64_t pc, struct sf_throw *ret);

	/*
	 * Whether a function that can leave its frame for a handler's (__builtin_eh_return) does so from pc on: at most one call is
	 * left up to where it sets sp, or sp is set. `exact`: the thread stands at pc; else pc is behind a call. NULL: no code is read
	 * for that.
	 */
	bool (*is_leaving)(const struct sf_reader *reader, uint64_t pc, bool exact);

	/*
	 * Whether the instruction at pc jumps to a place that lies before it. `exact`: the thread stands at pc, and a call there, or an
	 * instruction that leaves sp alone, may come before the jump. NULL: no code is read for that.
	 */
	bool (*jumps_back)(const struct sf_reader *reader, uint64_t pc, bool exact, uint64_t *target_ret);

	/*
	 * Whether the word below sp at pc was the last one that a pop took. A pop ends at `start`, or comes between `start` and pc, and
	 * from there up to pc no instruction moves sp, jumps, calls or returns. NULL: no code is read for that.
	 */
	bool (*keeps_popped)(const struct sf_reader *reader, uint64_t start, uint64_t pc);

	/*
	 * For frames that only a frame pointer leads out of, where it is not known
	 * (step_inferred.c). NULL: there is no such step. `prologue`: whether the code before
	 * `pushed` begins a function by pushing the frame pointer, and the code before `framed`
	 * sets it, where what is between leaves sp alone; pc is in the same function. `jump_slot`:
	 * whether the code at pc only jumps to where the word at *slot_ret points, as a PLT's does.
	 * `jumps_to`: whether a function that begins at `start` has a jump to `target` among its
	 * first instructions.
	 */
	bool (*prologue)(const struct sf_reader *reader, uint64_t pushed, uint64_t framed,
			 uint64_t pc, struct sf_prologue *ret);
	bool (*jump_slot)(const struct sf_reader *reader, uint64_t pc, uint64_t *slot_ret);
	bool (*jumps_to)(const struct sf_reader *reader, uint64_t start, uint64_t target);
};

#define X(name) extern const struct sf_arch sf_arch_##name;
SF_ARCHS(X)
#undef X

/* The architecture with this e_machine, or NULL. Signal-safe. */
const struct sf_arch *sf_arch_by_machine(uint16_t elf_machine);

/* The one that stillframe itself runs on. The choice is made at build time. */
static inline const struct sf_arch *sf_arch_host(void)
{
	return &SF_HOST;
}

static inline bool sf_reg_known(const struct sf_regs *regs, unsigned reg)
{
	return reg < SF_MAX_REGS && (regs->known >> reg & 1);
}

static inline void sf_reg_set(struct sf_regs *regs, unsigned reg, uint64_t value)
{
	regs->r[reg] = value;
	regs->known |= UINT64_C(1) << reg;
}

#endif
