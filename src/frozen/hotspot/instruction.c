/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Takes the operands of an instruction from its parts, which the decoder of x86-64 finds (frozen/code_x86_64.h).
 * Signal-safe.
 */
#include "frozen/hotspot/instruction.h"

#include "frozen/code_x86_64.h"

#include "frozen/frozen.h"

#define NO_BASE 16

/* A little-endian number of up to 8 bytes, with its sign. */
static int64_t signed_number(const uint8_t *at, unsigned n)
{
	uint64_t value = 0;

	for (unsigned i = 0; i < n; i++)
		value |= (uint64_t)at[i] << 8 * i;
	return n && n < 8 ? (int64_t)(value << (64 - 8 * n)) >> (64 - 8 * n) : (int64_t)value;
}

static void tell_memory(const struct sf_x86_parts *parts, struct sf_instruction *ret)
{
	const uint8_t *at = parts->operand + 1;
	unsigned n = ret->mod == 1 ? 1 : ret->mod == 2 ? 4 : 0;

	ret->base = ret->rm;
	if ((ret->rm & 7) == 4) {
		ret->base = (uint8_t)((*at & 7) | (parts->rex & 1) << 3);
		ret->has_index = (*at >> 3 & 7) != 4 || (parts->rex & 2);
		at++;
	}
	if (ret->mod == 0 && (ret->base & 7) == 5) {
		ret->base = NO_BASE;
		n = 4;
	}
	ret->displacement = (int32_t)signed_number(at, n);
}

bool sf_instruction_decode(const uint8_t *code, size_t size, struct sf_instruction *ret)
{
	struct sf_x86_parts parts;

	if (!sf_x86_take_apart(code, size, &parts))
		return false;
	*ret = (struct sf_instruction){
		.size = (uint8_t)parts.at, .map = (uint8_t)parts.map, .opcode = parts.opcode,
		.is_vector = parts.is_vector, .is_wide = (parts.rex & 8) != 0, .base = NO_BASE, .mod = 3,
		.rm = (uint8_t)((parts.opcode & 7) | (parts.rex & 1) << 3),
		.immediate = signed_number(parts.number, parts.number_size),
	};
	if (!parts.operand)
		return true;
	ret->has_modrm = true;
	ret->mod = *parts.operand >> 6;
	ret->reg = (uint8_t)((*parts.operand >> 3 & 7) | (parts.rex & 4) << 1);
	ret->rm = (uint8_t)((*parts.operand & 7) | (parts.rex & 1) << 3);
	if (ret->mod != 3)
		tell_memory(&parts, ret);
	return true;
}

bool sf_instruction_is_conditional(const struct sf_instruction *in)
{
	return (in->map == SF_MAP_ONE && ((in->opcode & 0xf0) == 0x70 || (in->opcode & 0xfc) == 0xe0)) ||
	       (in->map == SF_MAP_0F && (in->opcode & 0xf0) == 0x80);
}

bool sf_instruction_at(struct sf_code_piece *piece, const struct sf_reader *reader, uint64_t pc, uint64_t end,
		       struct sf_instruction *ret)
{
	uint64_t at = pc - piece->start;

	if (pc >= end)
		return false;
	if (at > piece->size || piece->size - at < SF_X86_MAX_SIZE) {
		piece->start = pc;
		piece->size = end - pc < sizeof(piece->bytes) ? (size_t)(end - pc) : sizeof(piece->bytes);
		at = 0;
		if (!sf_read(reader, piece->bytes, pc, piece->size)) {
			piece->size = 0;
			return false;
		}
	}
	return sf_instruction_decode(piece->bytes + at, piece->size - at, ret);
}
