/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The operands of an instruction of x86-64, as far as following the stack pointer needs them (Intel SDM, volume 2,
 * 2.1). Signal-safe.
 */
#ifndef SF_FROZEN_HOTSPOT_INSTRUCTION_H
#define SF_FROZEN_HOTSPOT_INSTRUCTION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "frozen/reader.h"

enum sf_opcode_map { SF_MAP_ONE = 0, SF_MAP_0F };

struct sf_instruction {
	uint8_t size;
	uint8_t map;             /* enum sf_opcode_map, or another */
	uint8_t opcode;
	bool    is_vector;       /* VEX or EVEX: it changes no stack pointer, and its operands are not told */
	bool    is_wide;         /* 64 bits: REX.W */
	bool    has_modrm;
	uint8_t mod, reg, rm;    /* of ModRM; reg and rm with their bits of REX. Without ModRM rm is of the opcode */
	uint8_t base;            /* of the memory operand; 16: none, or relative to the next instruction */
	bool    has_index;
	int32_t displacement;
	int64_t immediate;       /* sign-extended; of a jump or a call: how far behind this instruction it goes */
};

/* False: the bytes are no such instruction, or too few. */
bool sf_instruction_decode(const uint8_t *code, size_t size, struct sf_instruction *ret);

/* Code as it is read, in pieces. All zeros: nothing yet. */
struct sf_code_piece {
	uint64_t start;
	size_t   size;
	uint8_t  bytes[256];
};

/* The instruction at pc, in code that ends at `end`. False: it is none, or it cannot be read. */
bool sf_instruction_at(struct sf_code_piece *piece, const struct sf_reader *reader, uint64_t pc, uint64_t end,
		       struct sf_instruction *ret);

/* A jump that is made or not: jcc, loop and jrcxz. */
bool sf_instruction_is_conditional(const struct sf_instruction *in);

#endif
