/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Code on x86-64 for which its rules do not hold, or do not say enough (sf_arch.is_in_throw, is_leaving, jumps_back and
 * keeps_popped). Signal-safe.
 */
#include "frozen/arch_x86_64.h"
#include "frozen/code_x86_64.h"
#include "frozen/reader.h"

#include "frozen/frozen.h"

/*
 * --- a throw to a handler, as OCaml's ---
 *
 * A register leads to a word that has the address of the innermost handler's record, and that record is two words on the stack:
 * the address of the next record, and the handler. So a throw is `mov word, %rsp; pop word`, and then a return, or `pop %r11;
 * jmp *%r11`. The runtime loads a register before its return.
 */

#define BEHIND 24 /* bytes before pc: three instructions of a throw have 21 */
#define AHEAD 24  /* ... and from pc on */
#define WORD 8

enum { REX_W = 8, REX_R = 4, REX_B = 1, OPCODE_LOAD = 0x8b, OPCODE_POP = 0x8f, OPCODE_RETURN = 0xc3 };

/* A throw's instructions: where each begins in the code. */
struct throw {
	size_t pop, next, last; /* `next` may be `last` */
	uint8_t reg;            /* the last one jumps to where this register points (DWARF's number); SF_NO_REG: it returns */
};

static bool takes(const uint8_t *code, size_t size, size_t at, struct sf_x86_parts *ret)
{
	return at < size && sf_x86_take_apart(code + at, size - at, ret) && ret->map == 0 && !ret->is_vector && !ret->is_short;
}

static unsigned operation(const struct sf_x86_parts *p)
{
	return *p->operand >> 3 & 7;
}

/* mov memory, %reg. Not by the numbers of rsp and rbp, 4 and 5: they have other meanings in an operand. */
static bool is_load(const struct sf_x86_parts *p)
{
	return p->opcode == OPCODE_LOAD && p->rex & REX_W && *p->operand >> 6 != 3 && (*p->operand & 6) != 4;
}

static bool sets_sp(const struct sf_x86_parts *p)
{
	return is_load(p) && operation(p) == 4 && !(p->rex & REX_R);
}

static bool is_same_memory(const struct sf_x86_parts *a, const struct sf_x86_parts *b)
{
	const size_t size = (size_t)(a->number - a->operand);
	unsigned differs = ((*a->operand ^ *b->operand) & 0xc7) | ((a->rex ^ b->rex) & REX_B);

	for (size_t i = 1; i < size && size == (size_t)(b->number - b->operand); i++)
		differs |= a->operand[i] ^ b->operand[i];
	return !differs;
}

/* A return, or a jump by the register that was just taken from the stack. */
static bool takes_end(const uint8_t *code, size_t size, struct throw *ret)
{
	struct sf_x86_parts p, jump;
	unsigned reg;

	if (!takes(code, size, ret->next, &p))
		return false;
	ret->reg = SF_NO_REG;
	ret->last = ret->next;
	if (p.opcode == OPCODE_LOAD && is_load(&p) && !sets_sp(&p)) {
		ret->last += p.at;
		if (!takes(code, size, ret->last, &p))
			return false;
	}
	if (p.opcode == OPCODE_RETURN)
		return true;
	reg = (p.opcode & 7u) | (p.rex & REX_B) << 3;
	ret->last += p.at;
	if ((p.opcode & 0xf8) != 0x58 || !takes(code, size, ret->last, &jump))
		return false;
	ret->reg = sf_x86_dwarf(reg);
	return jump.opcode == 0xff && *jump.operand >> 6 == 3 && operation(&jump) == 4 &&
	       ((*jump.operand & 7u) | (jump.rex & REX_B) << 3) == reg;
}

static bool takes_throw(const uint8_t *code, size_t size, size_t at, struct throw *ret)
{
	struct sf_x86_parts set, pop;

	if (!takes(code, size, at, &set) || !sets_sp(&set))
		return false;
	ret->pop = at + set.at;
	if (!takes(code, size, ret->pop, &pop) || pop.opcode != OPCODE_POP || operation(&pop) != 0 || !is_same_memory(&set, &pop))
		return false;
	ret->next = ret->pop + pop.at;
	return takes_end(code, size, ret);
}

/* Most code is none of it by its first byte. */
static bool may_be_in_throw(const uint8_t *code, size_t size)
{
	const size_t at = size > 1 && (code[0] & 0xf0) == 0x40;

	return size && (code[at] == OPCODE_POP || code[at] == OPCODE_LOAD || code[at] == OPCODE_RETURN || (code[at] & 0xf8) == 0x58 ||
			code[at] == 0xff);
}

/* The code around pc, of which BEHIND bytes lie before pc. Returns how many bytes there are; 0: no throw's, or not readable. */
static size_t read_code(const struct sf_reader *reader, uint64_t pc, uint8_t code[BEHIND + AHEAD])
{
	size_t n = AHEAD;

	while (n && !sf_read(reader, code + BEHIND, pc, n))
		n /= 2;
	return may_be_in_throw(code + BEHIND, n) && sf_read(reader, code, pc - BEHIND, BEHIND) ? BEHIND + n : 0;
}

/* Whether the instruction at BEHIND is one of a throw behind its first one. */
static bool find_throw(const uint8_t *code, size_t size, struct throw *ret)
{
	for (size_t at = 0; at < BEHIND && at < size; at++) {
		if (takes_throw(code, size, at, ret) && (ret->pop == BEHIND || ret->next == BEHIND || ret->last == BEHIND))
			return true;
	}
	return false;
}

bool sf_x86_is_in_throw(const struct sf_reader *reader, uint64_t pc, struct sf_throw *ret)
{
	uint8_t code[BEHIND + AHEAD];
	const size_t size = read_code(reader, pc, code);
	struct throw throw;

	if (!find_throw(code, size, &throw))
		return false;
	ret->reg = throw.reg != SF_NO_REG && throw.last == BEHIND ? throw.reg : SF_NO_REG;
	ret->pushed = throw.pop == BEHIND ? WORD : 0;
	return true;
}

/* --- which way code goes on, one way only --- */

#define CODE 16 /* bytes: of a call and a jump 10 */
#define MAX_STRAIGHT 256 /* bytes */
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
static bool moves_to_sp(const struct sf_reader *reader, uint64_t pc)
{
	struct sf_x86_instruction next;

	return decode(reader, pc, &next) && next.effect == SF_X86_OTHER_SP && next.size == SIZE_OF_MOV;
}

/* Behind mov %rcx, %rsp; pop %rcx follows, and then jmp *%rcx, or a return. */
static bool has_left(const struct sf_reader *reader, uint64_t pc)
{
	struct sf_x86_instruction last;

	return moves_to_sp(reader, pc - SIZE_OF_MOV) ||
	       (moves_to_sp(reader, pc - SIZE_OF_MOV - 1) && decode(reader, pc - 1, &last) && last.size == 1 &&
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
