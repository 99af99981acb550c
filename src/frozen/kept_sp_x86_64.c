/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Functions that align their stack, as those of OpenBLAS and x264: they keep their old sp in another register, and take it back
 * before they return. Signal-safe. The code is read straight on, whatever jumps it has, up to a return or a jump to an unknown place.
 */
#include "frozen/arch.h"
#include "frozen/code_x86_64.h"
#include "frozen/exit_x86_64.h"

#include "frozen/frozen.h"

#define MAX_INSTRUCTIONS 6144 /* a kernel of OpenBLAS (dgemm for Haswell) has 5,300 */

enum { RSP = 4, RBP = 5 }; /* in code */

static const uint8_t dwarf[16] = { 0, 2, 1, 3, 7, 6, 4, 5, 8, 9, 10, 11, 12, 13, 14, 15 };

/* mov between two registers, by their numbers in code. */
static bool is_move(const uint8_t *code, size_t size, unsigned *from_ret, unsigned *to_ret)
{
	struct sf_x86_parts p;

	if (!sf_x86_take_apart(code, size, &p) || p.map || p.opcode != 0x89 || !(p.rex & 8) || *p.operand >> 6 != 3)
		return false;
	*from_ret = (*p.operand >> 3 & 7u) | (p.rex & 4u) << 1;
	*to_ret = (*p.operand & 7u) | (p.rex & 1u) << 3;
	return true;
}

/* One instruction: *kept is a bit for each register that has got its value from sp on the way. False: no further. */
static bool look(const uint8_t *code, size_t size, const struct sf_x86_instruction *now, uint32_t *kept, unsigned *reg_ret)
{
	unsigned from, to;

	if (now->effect == SF_X86_RETURN || (now->effect == SF_X86_JUMP && !now->has_target))
		return false;
	if (!is_move(code, size, &from, &to))
		return true;
	if (from == RSP)
		*kept |= 1u << to;
	if (to != RSP || from == RBP)
		return true;
	*reg_ret = dwarf[from];
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
		if (!sf_x86_decode(code + at, n - at, &now) || !look(code + at, n - at, &now, &kept, reg_ret))
			return false;
	}
	*behind_ret = pc;
	return *reg_ret != SF_NO_REG;
}
