/* SPDX-License-Identifier: Apache-2.0 */
/* x86-64: register numbers of the System V psABI, figure 3.36; the kernel's signal frame. */
#include <elf.h>
#include <string.h>

#include "frozen/arch_x86_64.h"
#include "frozen/pattern_x86_64.h"
#include "frozen/reader.h"

#include "frozen/frozen.h"

enum { RAX, RDX, RCX, RBX, RSI, RDI, RBP, RSP, R8, R9, R10, R11, R12, R13, R14, R15, RIP, N_REGS };

/* rt_sigreturn is system call 15 (asm/unistd_64.h). glibc and musl: mov $15, %rax; syscall. */
static const struct sf_x86_pattern trampolines[] = {
	{ 9, 7, { 0x48, 0xc7, 0xc0, 0x0f, 0x00, 0x00, 0x00, 0x0f, 0x05 } },
	{ 7, 5, { 0xb8, 0x0f, 0x00, 0x00, 0x00, 0x0f, 0x05 } },
};

static bool is_sigreturn(const struct sf_reader *reader, uint64_t pc)
{
	for (unsigned i = 0; i < sizeof(trampolines) / sizeof(trampolines[0]); i++) {
		const struct sf_x86_pattern *pattern = &trampolines[i];

		if (sf_x86_matches(reader, pc, pattern) || sf_x86_matches(reader, pc - pattern->second, pattern))
			return true;
	}
	return false;
}

/*
 * The handler's return has popped the first word of struct rt_sigframe (arch/x86/include/asm/
 * sigframe.h), so sp points at its struct ucontext. Its uc_mcontext is behind uc_flags, uc_link and
 * uc_stack (asm-generic/ucontext.h), at 40, and starts with these (asm/sigcontext.h).
 */
#define UC_MCONTEXT 40

static const uint8_t sigcontext_order[] = {
	R8, R9, R10, R11, R12, R13, R14, R15, RDI, RSI, RBP, RBX, RDX, RAX, RCX, RSP, RIP,
};

static bool sigreturn(const struct sf_reader *reader, struct sf_regs *regs)
{
	uint64_t saved[sizeof(sigcontext_order)];

	if (!sf_read(reader, saved, regs->r[RSP] + UC_MCONTEXT, sizeof(saved)))
		return false;
	for (unsigned i = 0; i < sizeof(sigcontext_order); i++)
		sf_reg_set(regs, sigcontext_order[i], saved[i]);
	regs->pc = regs->r[RIP];
	return true;
}

static bool is_system_call(const struct sf_reader *reader, uint64_t pc)
{
	static const struct sf_x86_pattern syscall = { 2, 0, { 0x0f, 0x05 } };

	return sf_x86_matches(reader, pc, &syscall);
}

/* The bytes of an indirect call (ff /2) with these bytes behind its opcode, or 0 if it is another instruction. */
static unsigned indirect_call_size(const uint8_t operand[2])
{
	static const uint8_t displacement[] = { 0, 1, 4, 0 };
	const unsigned mode = operand[0] >> 6;
	const bool has_sib = mode != 3 && (operand[0] & 7) == 4;
	const unsigned base = operand[has_sib] & 7;

	if ((operand[0] >> 3 & 7) != 2)
		return 0;
	return 2 + has_sib + (mode == 0 && base == 5 ? 4 : displacement[mode]);
}

/*
 * Where a call through a register goes, if the instruction before it loads that register with a
 * number: mov $n, %r; call *%r. As code is made whose calls may go further than 2 GB. 0: it does not.
 */
static uint64_t loaded_target(const struct sf_reader *reader, uint64_t pc)
{
	uint8_t code[13];
	uint64_t target;
	const uint8_t *mov;
	bool has_rex;

	if (!sf_read(reader, code, pc - sizeof(code), sizeof(code)))
		return 0;
	has_rex = code[10] == 0x41;
	mov = has_rex ? code : code + 1;
	if (code[12] >> 3 != 0xd0 >> 3 ||
	    mov[0] != (has_rex ? 0x49 : 0x48) || mov[1] != (0xb8 | (code[12] & 7)))
		return 0;
	memcpy(&target, mov + 2, sizeof(target));
	return target;
}

static bool is_behind_call(const struct sf_reader *reader, uint64_t pc, uint64_t *target_ret)
{
	uint8_t code[7 + 1] = { 0 }; /* a byte more than the longest call */
	int32_t relative;

	if (!sf_read(reader, code, pc - 7, 7))
		return false;
	*target_ret = 0;
	if (code[2] == 0xe8) { /* call rel32 */
		memcpy(&relative, code + 3, sizeof(relative));
		*target_ret = pc + (uint64_t)(int64_t)relative;
		return true;
	}
	for (unsigned size = 2; size <= 7; size++) {
		const uint8_t *call = code + 7 - size;

		if (call[0] == 0xff && indirect_call_size(call + 1) == size) {
			*target_ret = size == 2 ? loaded_target(reader, pc) : 0;
			return true;
		}
	}
	return false;
}

/* Here `second` is the number of bytes that were pushed above the return address. */
static const struct sf_x86_pattern edges[] = {
	{ 4, 0, { 0xf3, 0x0f, 0x1e, 0xfa } }, /* endbr64 */
	{ 1, 0, { 0x55 } },                   /* push %rbp */
	{ 3, 8, { 0x48, 0x89, 0xe5 } },       /* mov %rsp, %rbp, as gas and gcc encode it */
	{ 3, 8, { 0x48, 0x8b, 0xec } },       /* the same, the other encoding */
	{ 1, 0, { 0xc3 } },                   /* ret */
	{ 2, 0, { 0xf3, 0xc3 } },             /* rep ret */
	{ 1, 0, { 0xc2 } },                   /* ret $n */
};

static bool is_frame_edge(const struct sf_reader *reader, uint64_t pc, uint8_t *pushed_ret)
{
	for (unsigned i = 0; i < sizeof(edges) / sizeof(edges[0]); i++) {
		if (sf_x86_matches(reader, pc, &edges[i])) {
			*pushed_ret = edges[i].second;
			return true;
		}
	}
	return false;
}

#define BEFORE_CALL 64
#define PAGE 4096

/*
 * xor %ebp, %ebp, or sub, in both encodings, at any byte. A file's code may begin with _start, at the start of a page, with nothing
 * before it (lld).
 */
static bool clears_fp(const struct sf_reader *reader, uint64_t pc)
{
	uint8_t code[BEFORE_CALL];
	size_t n = sizeof(code);

	if (!sf_read(reader, code, pc - n, n)) {
		n = pc % PAGE < n ? pc % PAGE : 0;
		if (!sf_read(reader, code, pc - n, n))
			return false;
	}
	for (size_t i = 0; i + 2 <= n; i++) {
		if (code[i + 1] == 0xed && (code[i] == 0x31 || code[i] == 0x33 || code[i] == 0x29 || code[i] == 0x2b))
			return true;
	}
	return false;
}

/*
 * __clone in a new thread (musl: src/thread/x86_64/clone.s), and _start (arch/x86_64/crt_arch.h): the bytes up to pc;
 * 0: any.
 */
static bool is_first_call(const struct sf_reader *reader, uint64_t pc)
{
	static const uint8_t clone[] = { 0x31, 0xed, 0x5f, 0x41, 0xff, 0xd1 };
	static const uint8_t start[] = { 0x48, 0x31, 0xed, 0x48, 0x89, 0xe7, 0x48, 0x8d, 0x35, 0, 0, 0, 0, 0x48, 0x83, 0xe4, 0xf0, 0xe8, 0, 0, 0, 0 };
	uint8_t code[sizeof(start)];

	if (!sf_read(reader, code, pc - sizeof(code), sizeof(code)))
		return false;
	if (memcmp(code + sizeof(code) - sizeof(clone), clone, sizeof(clone)) == 0)
		return true;
	for (size_t i = 0; i < sizeof(start); i++) {
		if (start[i] && code[i] != start[i])
			return false;
	}
	return true;
}

#define MAX_POPPED 6 /* as many registers as a function keeps */

/* The register that the instruction which ends behind `n` bytes of code pops, and its size; N_REGS: it pops none. */
static unsigned popped(const uint8_t *code, size_t n, unsigned *size_ret)
{
	static const uint8_t order[] = { RAX, RCX, RDX, RBX, RSP, RBP, RSI, RDI, R8, R9, R10, R11, R12, R13, R14, R15 };
	const bool is_pop = n && (code[n - 1] & 0xf8) == 0x58, is_far = n > 1 && code[n - 2] == 0x41; /* with REX.B */

	*size_ret = is_pop && is_far ? 2 : 1;
	if (n && code[n - 1] == 0xc9)
		return RBP; /* leave */
	return is_pop ? order[(code[n - 1] & 7) + (is_far ? 8 : 0)] : N_REGS;
}

static bool has_popped(const struct sf_reader *reader, uint64_t pc, unsigned reg, unsigned n)
{
	uint8_t code[2 * MAX_POPPED];
	size_t at = 2 * (size_t)n;
	unsigned found = N_REGS, size;

	if (!n || n > MAX_POPPED || !sf_read(reader, code, pc - at, at))
		return false;
	for (unsigned i = 0; i < n; i++) {
		found = popped(code, at, &size);
		if (found == N_REGS)
			return false;
		at -= size;
	}
	return found == reg;
}

/* endbr64 and bnd or not; jmp *displacement(%rip). */
static bool jump_slot(const struct sf_reader *reader, uint64_t pc, uint64_t *slot_ret)
{
	uint8_t code[7];
	int32_t relative;
	unsigned at;

	if (sf_x86_matches(reader, pc, &sf_x86_endbr))
		pc += sf_x86_endbr.size;
	if (!sf_read(reader, code, pc, sizeof(code)))
		return false;
	at = code[0] == 0xf2;
	if (code[at] != 0xff || code[at + 1] != 0x25)
		return false;
	memcpy(&relative, code + at + 2, sizeof(relative));
	*slot_ret = pc + at + 6 + (uint64_t)(int64_t)relative;
	return true;
}

/* mov $number, %eax; syscall */
static int32_t loaded_syscall(const uint8_t code[SF_CALL_CODE])
{
	int32_t number;

	if (code[0] != 0xb8 || code[5] != 0x0f || code[6] != 0x05)
		return -1;
	memcpy(&number, code + 1, sizeof(number));
	return number;
}

/*
 * Bytes from the start of a PLT entry to behind its push of an imm32; 0: it has none. The
 * push is first (-z bndplt), behind endbr64 (-z ibtplt), or behind jmp *GOT(%rip).
 */
static size_t find_push(const uint8_t *entry)
{
	size_t at = 0;

	if (entry[0] == 0xf3 && entry[1] == 0x0f && entry[2] == 0x1e && entry[3] == 0xfa)
		at = 4;
	else if (entry[0] == 0xff && entry[1] == 0x25)
		at = 6;
	return entry[at] == 0x68 ? at + 5 : 0;
}

/* PLT0 begins with pushq GOT+8(%rip), 6 bytes, and is entered with one word pushed (psABI, section 5.2). */
static unsigned plt_steps(const uint8_t *section, size_t size, size_t at,
			  struct sf_plt_step ret[SF_PLT_STEPS])
{
	const uint8_t *entry = section + at;
	const bool whole = size - at >= SF_PLT_ENTRY;
	const bool first = whole && entry[0] == 0xff && entry[1] == 0x35;
	const size_t pushed = first ? 6 : whole ? find_push(entry) : 0;

	ret[0] = (struct sf_plt_step){ at, first ? 8 : 0 };
	ret[1] = (struct sf_plt_step){ at + pushed, first ? 16 : 8 };
	return pushed ? 2 : 1;
}

const struct sf_arch sf_arch_x86_64 = {
	.name = "x86_64",
	.elf_machine = EM_X86_64,
	.n_regs = N_REGS,
	.sp = RSP,
	.fp = RBP,
	.lr = SF_NO_REG,
	.result = RAX,
	.return_column = RIP,
	.red_zone = 128,
	.n_saved = 6,
	.saved = { RBX, RBP, R12, R13, R14, R15 },
	.syscall_args = { RDI, RSI, RDX, R10, R8, R9 },
	.code_mask = UINT64_MAX,
	.vdso_clock = "__vdso_clock_gettime",
	.vdso_cpu = "__vdso_getcpu",
	.is_sigreturn = is_sigreturn,
	.sigreturn = sigreturn,
	.sigframe_size = UC_MCONTEXT + sizeof(sigcontext_order) * 8,
	.syscall_size = 2,
	.is_system_call = is_system_call,
	.loaded_syscall = loaded_syscall,
	.plt_steps = plt_steps,
	.is_behind_call = is_behind_call,
	.is_frame_edge = is_frame_edge,
	.find_exit = sf_x86_find_exit,
	.find_kept_sp = sf_x86_find_kept_sp,
	.common_code = sf_x86_common_code,
	.switches_stack = sf_x86_switches_stack,
	.find_call = sf_x86_find_call,
	.clears_fp = clears_fp,
	.is_first_call = is_first_call,
	.has_popped = has_popped,
	.follow_epilogue = sf_x86_follow_epilogue,
	.is_in_throw = sf_x86_is_in_throw,
	.is_leaving = sf_x86_is_leaving,
	.jumps_back = sf_x86_jumps_back,
	.keeps_popped = sf_x86_keeps_popped,
	.prologue = sf_x86_prologue,
	.jump_slot = jump_slot,
	.jumps_to = sf_x86_jumps_to,
};
