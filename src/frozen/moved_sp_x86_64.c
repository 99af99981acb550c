/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Code on x86-64 whose stack is not simply where sp points: functions that align their stack, functions that go to another
 * stack, and code of Haskell (sf_arch.find_kept_sp, switches_stack, find_call and common_code). Signal-safe.
 */
#include <string.h>

#include "frozen/arch_x86_64.h"
#include "frozen/code_x86_64.h"
#include "frozen/reader.h"

#include "frozen/frozen.h"

/*
 * --- functions that align their stack, as those of OpenBLAS and x264 ---
 *
 * They keep their old sp in another register, and take it back before they return. The code is read straight on, whatever
 * jumps it has, up to a return or a jump to an unknown place.
 */

#define MAX_INSTRUCTIONS 6144 /* a kernel of OpenBLAS (dgemm for Haswell) has 5,506. So many take 45 us */

enum { RSP = 4, RBP = 5 }; /* in code */

/* lea (%r10), %rsp, as in OpenSSL: REX.W, 8d, ModRM. */
static bool is_lea_to_sp(const uint8_t *code, unsigned *from_ret, unsigned *to_ret)
{
	*from_ret = (code[2] & 7u) | (code[0] & 1u) << 3;
	*to_ret = RSP;
	return code[1] == 0x8d && !(code[0] & 4u) && (code[2] & 0xf8) == RSP << 3;
}

/* mov between two registers of 64 bits, by their numbers in code: REX.W, 89, ModRM. */
static bool is_move(const uint8_t *code, unsigned size, unsigned *from_ret, unsigned *to_ret)
{
	if (size != 3 || (code[0] & 0xf8) != 0x48)
		return false;
	if (is_lea_to_sp(code, from_ret, to_ret))
		return true;
	if (code[1] != 0x89 || code[2] >> 6 != 3)
		return false;
	*from_ret = (code[2] >> 3 & 7u) | (code[0] & 4u) << 1;
	*to_ret = (code[2] & 7u) | (code[0] & 1u) << 3;
	return true;
}

/* One instruction: *kept is a bit for each register that has got its value from sp on the way. False: no further. */
static bool look(const uint8_t *code, const struct sf_x86_instruction *now, uint32_t *kept, unsigned *reg_ret)
{
	unsigned from, to;

	if (now->effect == SF_X86_RETURN || (now->effect == SF_X86_JUMP && !now->has_target))
		return false;
	if (!is_move(code, now->size, &from, &to))
		return true;
	if (from == RSP)
		*kept |= 1u << to;
	if (to != RSP || from == RBP)
		return true;
	*reg_ret = sf_x86_dwarf(from);
	return !(*kept >> from & 1);
}

bool sf_x86_find_kept_sp(const struct sf_reader *reader, uint64_t pc, unsigned *reg_ret, uint64_t *behind_ret)
{
	struct sf_x86_instruction now;
	uint8_t code[SF_X86_CHUNK];
	size_t at = 0, n = 0;
	uint32_t kept = 0;

	*reg_ret = SF_NO_REG;
	for (unsigned i = 0; i < MAX_INSTRUCTIONS && *reg_ret == SF_NO_REG; i++, at += now.size, pc += now.size) {
		if (n - at < SF_X86_MAX_SIZE) {
			n = sf_x86_read_code(reader, pc, code);
			at = 0;
		}
		if (!sf_x86_decode(code + at, n - at, &now) || !look(code + at, &now, &kept, reg_ret))
			return false;
	}
	*behind_ret = pc;
	return *reg_ret != SF_NO_REG;
}

/* --- code that goes to another stack, as Go's systemstack does: it sets sp, and then calls --- */

/* sp is set in so many bytes. Go's time.now (time_linux_amd64.s) calls twice and multiplies: it has 81 bytes from there on. */
#define BEFORE_CALL 96

/* mov to sp from a register or from memory, with REX.W. */
static bool sets_sp(const uint8_t *code)
{
	return (code[0] & 0xf8) == 0x48 && (code[1] == 0x89 || code[1] == 0x8b);
}

/*
 * Whether the instructions from `code` on end at `end`, and only calls leave this code and come back. *last_ret: the
 * last one.
 */
static bool leads_to(const uint8_t *code, const uint8_t *end, enum sf_x86_effect *last_ret)
{
	struct sf_x86_instruction next;

	while (code < end && sf_x86_decode(code, (size_t)(end - code), &next) && next.effect != SF_X86_JUMP &&
	       next.effect != SF_X86_RETURN) {
		code += next.size;
		*last_ret = next.effect;
	}
	return code == end;
}

static bool is_other_sp(const struct sf_x86_instruction *next)
{
	return next->effect == SF_X86_OTHER_SP || next->effect == SF_X86_LOAD_SP;
}

/* The first call, return or setting of sp in the code from pc on; plain if there is none nearby. *pc moves behind it. */
static enum sf_x86_effect find_next(const struct sf_reader *reader, uint64_t *pc)
{
	struct sf_x86_instruction next;
	uint8_t code[SF_X86_CHUNK];
	const size_t n = sf_x86_read_code(reader, *pc, code);

	for (size_t at = 0; sf_x86_decode(code + at, n - at, &next);) {
		at += next.size;
		if (next.effect == SF_X86_CALL || next.effect == SF_X86_RETURN || is_other_sp(&next)) {
			*pc += at;
			return next.effect;
		}
	}
	return SF_X86_PLAIN;
}

/* A jump comes before a return: Go's mcall goes to an error, and a new thread's first function to the end of the thread. */
static bool never_returns(const struct sf_reader *reader, uint64_t pc)
{
	struct sf_x86_instruction next;
	uint8_t code[SF_X86_CHUNK];
	const size_t n = sf_x86_read_code(reader, pc, code);

	for (size_t at = 0; sf_x86_decode(code + at, n - at, &next); at += next.size) {
		if (next.effect == SF_X86_JUMP || next.effect == SF_X86_RETURN)
			return next.effect == SF_X86_JUMP;
	}
	return false;
}

/* Where the thread stands: whether it is on the other stack still, or has come back. */
static bool is_still_switched(const struct sf_reader *reader, uint64_t pc, bool *gives_up_ret)
{
	const enum sf_x86_effect next = find_next(reader, &pc);

	*gives_up_ret = next == SF_X86_CALL && never_returns(reader, pc);
	return next != SF_X86_RETURN;
}

bool sf_x86_switches_stack(const struct sf_reader *reader, uint64_t pc, bool exact, bool *gives_up_ret)
{
	struct sf_x86_instruction next;
	enum sf_x86_effect last = SF_X86_PLAIN;
	uint8_t code[BEFORE_CALL];

	if (!sf_read(reader, code, pc - sizeof(code), sizeof(code)))
		return false;
	for (size_t i = 0; i + 3 <= sizeof(code); i++) {
		if (!sets_sp(code + i) || !sf_x86_decode(code + i, sizeof(code) - i, &next) ||
		    !is_other_sp(&next) || !leads_to(code + i, code + sizeof(code), &last))
			continue;
		*gives_up_ret = !exact && never_returns(reader, pc);
		return exact ? is_still_switched(reader, pc, gives_up_ret) : last == SF_X86_CALL;
	}
	return false;
}

#define CALL_SIZE 5 /* call rel32 */

/* Where the call at `pc` goes to; 0: there is none. */
static uint64_t called_at(const uint8_t *code, uint64_t pc)
{
	int32_t relative;

	memcpy(&relative, code + 1, sizeof(relative));
	return code[0] == 0xe8 ? pc + CALL_SIZE + (uint64_t)(int64_t)relative : 0;
}

#define MAX_JUMPER 256   /* bytes of a function in which a jump out of it is looked for */

/* jmp rel32, at any byte: 32 bits that are right by chance are rare. */
bool sf_x86_jumps_to(const struct sf_reader *reader, uint64_t start, uint64_t target)
{
	uint8_t code[MAX_JUMPER];
	size_t n = sizeof(code);
	int32_t relative;

	while (n != 0 && !sf_read(reader, code, start, n))
		n /= 2;
	for (size_t i = 0; i + 5 <= n; i++) {
		memcpy(&relative, code + i + 1, sizeof(relative));
		if (code[i] == 0xe9 && start + i + 5 + (uint64_t)(int64_t)relative == target)
			return true;
	}
	return false;
}

/* At any byte: 32 bits that are right by chance are rare. */
uint64_t sf_x86_find_call(const struct sf_reader *reader, uint64_t start, uint64_t end, uint64_t target, bool or_jumps)
{
	uint8_t code[SF_X86_CHUNK];
	size_t n = CALL_SIZE;

	for (; start + CALL_SIZE <= end && n >= CALL_SIZE; start += n - CALL_SIZE + 1) {
		n = sf_x86_read_code(reader, start, code);
		for (size_t i = 0; i + CALL_SIZE <= n && start + i + CALL_SIZE <= end; i++) {
			const uint64_t called = called_at(code + i, start + i);

			if (called && (called == target || (or_jumps && sf_x86_jumps_to(reader, called, target))))
				return start + i + CALL_SIZE;
		}
	}
	return 0;
}

/*
 * --- code of Haskell by GHC ---
 *
 * It has no rules, keeps its stack in rbp, and goes on by jumps through registers, so its instructions often show no return.
 * But it leaves rsp alone, from the jump of the runtime's StgRun into it to StgReturn (rts/StgCRun.c). So any code of it that
 * shows a way out shows it for all, such as the runtime's, to which Haskell code goes when its heap is full.
 *
 * r13 is the register BaseReg (REG_Base, includes/stg/MachRegs.h), the address of a StgRegTable. A StgFunTable lies before that
 * (struct Capability_, rts/Capability.h): stgEagerBlackholeInfo, stgGCEnter1, stgGCFun (includes/stg/Regs.h).
 */

#define BASE_REG 13
#define FUN_TABLE 24
#define RESERVED_C_STACK 16384 /* bytes that StgRun takes: RESERVED_C_STACK_BYTES, includes/rts/Constants.h */

bool sf_x86_common_code(const struct sf_reader *reader, const struct sf_regs *regs, uint64_t *pc_ret, int32_t *least_ret)
{
	uint64_t table[FUN_TABLE / 8];

	if (!sf_reg_known(regs, BASE_REG) || regs->r[BASE_REG] % 8 || !sf_read(reader, table, regs->r[BASE_REG] - FUN_TABLE, FUN_TABLE))
		return false;
	*pc_ret = table[1];
	*least_ret = RESERVED_C_STACK;
	return true;
}
