/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Functions that align their stack, as those of OpenBLAS and x264: they keep their old sp in another register, and take it back
 * before they return. Signal-safe. The code is read straight on, whatever jumps it has, up to a return or a jump to an unknown place.
 */
#include "frozen/arch.h"
#include "frozen/code_x86_64.h"
#include "frozen/exit_x86_64.h"

#include "frozen/frozen.h"

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
