/* SPDX-License-Identifier: Apache-2.0 */
/* Which way x86-64 code goes on, one way only (sf_arch.jumps_back and keeps_popped). Signal-safe. */
#include "frozen/code_x86_64.h"
#include "frozen/reader.h"
#include "frozen/straight_x86_64.h"

#include "frozen/frozen.h"

#define CODE 16 /* bytes: of a call and a jump 10 */
#define MAX_STRAIGHT 256 /* bytes */
#define WORD 8

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
