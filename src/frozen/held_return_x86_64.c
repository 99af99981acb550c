/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Functions that take their arguments from the stack, of which they do not know the number: they pop the return address, move sp
 * and push the address again, as V8's code does (pop %rcx; lea 8(%r15), %rsp; push %rcx; ret). Meanwhile it is in the register
 * only. Signal-safe.
 */
#include "frozen/arch_x86_64.h"
#include "frozen/code_x86_64.h"

#include "frozen/frozen.h"

#define PUSH 0x50
#define POP 0x58
#define REX_B 1u

/* Code, of which so many bytes are at hand. */
struct code {
	const uint8_t *at;
	size_t size;
};

static bool next_instruction(struct code *code, struct sf_x86_instruction *ret)
{
	if (!sf_x86_decode(code->at, code->size, ret))
		return false;
	code->at += ret->size;
	code->size -= ret->size;
	return true;
}

/* The register that the next instruction pushes or pops; SF_NO_REG: it does something else. */
static uint8_t moved_register(struct code *code, uint8_t opcode)
{
	struct sf_x86_parts p;

	if (!sf_x86_take_apart(code->at, code->size, &p) || p.map != 0 || p.is_vector || p.is_short || (p.opcode & 0xf8) != opcode)
		return SF_NO_REG;
	code->at += p.at;
	code->size -= p.at;
	return sf_x86_dwarf((p.opcode & 7u) | (p.rex & REX_B) << 3);
}

/* The register that is pushed first and then returned to; else SF_NO_REG. */
static uint8_t returned_to(struct code code)
{
	const uint8_t reg = moved_register(&code, PUSH);
	struct sf_x86_instruction now;

	return reg != SF_NO_REG && next_instruction(&code, &now) && now.effect == SF_X86_RETURN ? reg : SF_NO_REG;
}

/* The same behind an instruction that moves sp and is no pop of a register. */
static uint8_t returned_to_behind(struct code code)
{
	struct code popped = code;
	struct sf_x86_instruction now;

	if (moved_register(&popped, POP) != SF_NO_REG || !next_instruction(&code, &now))
		return SF_NO_REG;
	return now.effect == SF_X86_OTHER_SP || (now.effect == SF_X86_PUSH && now.value < 0) ? returned_to(code) : SF_NO_REG;
}

bool sf_x86_pops_return(const uint8_t *bytes, size_t size)
{
	struct code code = { bytes, size };
	const uint8_t reg = moved_register(&code, POP);

	return reg != SF_NO_REG && returned_to_behind(code) == reg;
}

bool sf_x86_holds_return(const uint8_t *bytes, size_t size, struct sf_exit *ret)
{
	const struct code code = { bytes, size };
	const uint8_t reg = returned_to(code);

	*ret = (struct sf_exit){ .is_held = true, .has_given = reg != SF_NO_REG };
	ret->held = ret->has_given ? reg : returned_to_behind(code);
	return ret->held != SF_NO_REG;
}
