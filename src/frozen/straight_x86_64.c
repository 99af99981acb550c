/* SPDX-License-Identifier: Apache-2.0 */
/* Which way x86-64 code goes on, one way only (sf_arch.is_leaving, jumps_back and keeps_popped). Signal-safe. */
#include "frozen/code_x86_64.h"
#include "frozen/reader.h"
#include "frozen/straight_x86_64.h"

#include "frozen/frozen.h"

#define CODE 16 /* bytes: of a call and a jump 10 */
#define MAX_STRAIGHT 256 /* bytes */
#define WORD 8
#define SIZE_OF_MOV 3 /* from one register to another */

static bool decode(const struct sf_reader *reader, uint64_t pc, struct sf_x86_instruction *ret)
{
	uint8_t code[CODE];
	size_t n = sizeof(code);

	while (n && !sf_read(reader, code, pc, n))
		n /= 2;
	return sf_x86_decode(code, n, ret);
}

bool sf_x86_jumps_back(const struct sf_reader *reader, uint64_t pc, bool exact, uint64_t *target_ret)
{
	struct sf_x86_instruction next;

	if (!decode(reader, pc, &next))
		return false;
	if (exact && (next.effect == SF_X86_CALL || next.effect == SF_X86_PLAIN)) {
		pc += next.size;
		if (!decode(reader, pc, &next))
			return false;
	}
	*target_ret = pc + next.size + (uint64_t)(int64_t)next.distance;
	return next.effect == SF_X86_JUMP && next.has_target && next.distance < 0;
}

bool sf_x86_keeps_popped(const struct sf_reader *reader, uint64_t start, uint64_t pc)
{
	struct sf_x86_instruction next;
	bool keeps = true;

	if (pc - start > MAX_STRAIGHT)
		return false;
	for (; start < pc && decode(reader, start, &next); start += next.size) {
		if (next.effect != SF_X86_PLAIN)
			keeps = !keeps && next.effect == SF_X86_PUSH && next.value == -WORD;
	}
	return keeps && start == pc;
}

/* mov %rcx, %rsp, as far as it matters; the frame pointer is no such register. */
static bool sets_sp(const struct sf_reader *reader, uint64_t pc)
{
	struct sf_x86_instruction next;

	return decode(reader, pc, &next) && next.effect == SF_X86_OTHER_SP && next.size == SIZE_OF_MOV;
}

/* Behind mov %rcx, %rsp; pop %rcx follows, and then jmp *%rcx, or a return. */
static bool has_left(const struct sf_reader *reader, uint64_t pc)
{
	struct sf_x86_instruction last;

	return sets_sp(reader, pc - SIZE_OF_MOV) ||
	       (sets_sp(reader, pc - SIZE_OF_MOV - 1) && decode(reader, pc - 1, &last) && last.size == 1 &&
		last.effect == SF_X86_PUSH && last.value == -WORD);
}

/* The instructions up to the setting of sp are followed; a branch is not taken, as those on the way only skip some code. */
bool sf_x86_is_leaving(const struct sf_reader *reader, uint64_t pc, bool exact)
{
	const uint64_t start = pc;
	struct sf_x86_instruction next;
	unsigned n_calls = 0;

	if (exact && has_left(reader, pc))
		return true;
	while (pc - start <= MAX_STRAIGHT && n_calls <= 1 && decode(reader, pc, &next)) {
		if (next.effect == SF_X86_OTHER_SP)
			return next.size == SIZE_OF_MOV;
		if (next.effect != SF_X86_PLAIN && next.effect != SF_X86_CALL && next.effect != SF_X86_BRANCH && next.effect != SF_X86_RESTORE_FP &&
		    !(next.effect == SF_X86_JUMP && next.has_target && next.distance > 0))
			return false;
		n_calls += next.effect == SF_X86_CALL;
		pc += next.size + (next.effect == SF_X86_JUMP ? (uint64_t)next.distance : 0);
	}
	return false;
}
