/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Decodes x86-64 instructions (Intel SDM, volume 2, appendix A). Signal-safe. Two tables have, for each opcode, what follows
 * it: an operand, and the bytes of a number.
 */
#include <string.h>

#include "frozen/code_x86_64.h"

#include "frozen/frozen.h"

enum { RSP = 4, RBP = 5 };

/*
 * What follows an opcode. m: an operand. 1, 2, 4, 8: a number of so many bytes. z: of 4, or 2 behind the prefix 66. v:
 * of 8 behind REX.W, else as z. b and Z: an operand and 1 byte, or as z. e: 3 bytes. g and G: an operand, and a number
 * for the first two of its group. Space: nothing. x: no instruction, or one that is not known.
 */
static const char one_byte[] =
	"mmmm1zxxmmmm1zxx" "mmmm1zxxmmmm1zxx" "mmmm1zxxmmmm1zxx" "mmmm1zxxmmmm1zxx"
	"xxxxxxxxxxxxxxxx" "                " "xxxmxxxxzZ1b    " "1111111111111111"
	"bZxbmmmmmmmmmmmm" "          x     " "8888    1z      " "11111111vvvvvvvv"
	"bb2 xxbZe 2  1x " "mmmmxxx mmmmmmmm" "1111111144x1    " "x xx  gG      mm";

/* Behind 0f. */
static const char two_byte[] =
	"mmmmx     x xmxx" "mmmmmmmmmmmmmmmm" "mmmmxxxxmmmmmmmm" "        xxxxxxxx"
	"mmmmmmmmmmmmmmmm" "mmmmmmmmmmmmmmmm" "mmmmmmmmmmmmmmmm" "bbbbmmm mmmmmmmm"
	"4444444444444444" "mmmmmmmmmmmmmmmm" "   mbmxx   mbmmm" "mmmmmmmmmmbmmmmm"
	"mmbmbbbm        " "mmmmmmmmmmmmmmmm" "mmmmmmmmmmmmmmmm" "mmmmmmmmmmmmmmmm";

static bool is_prefix(uint8_t byte)
{
	return byte == 0x66 || byte == 0xf0 || byte == 0xf2 || byte == 0xf3 || byte == 0x2e || byte == 0x36 ||
	       byte == 0x3e || byte == 0x26 || byte == 0x64 || byte == 0x65 || byte == 0x67;
}

/* VEX and EVEX: the opcode's map is in the prefix. */
static bool take_vector_prefix(struct sf_x86_parts *p)
{
	const uint8_t *code = p->code + p->at;
	const size_t size = code[0] == 0xc5 ? 2 : code[0] == 0xc4 ? 3 : 4;

	if (p->at + size >= p->n)
		return false;
	p->map = size == 2 ? 1 : code[1] & 7;
	p->is_vector = true;
	p->opcode = code[size];
	p->at += size + 1;
	return p->map >= 1 && p->map <= 3;
}

static bool take_opcode(struct sf_x86_parts *p)
{
	while (p->at < p->n && is_prefix(p->code[p->at]))
		p->is_short |= p->code[p->at++] == 0x66;
	if (p->at < p->n && (p->code[p->at] & 0xf0) == 0x40)
		p->rex = p->code[p->at++];
	if (p->at + 3 > p->n)
		return p->at < p->n && (p->opcode = p->code[p->at++], p->opcode != 0x0f);
	if (!p->rex && (p->code[p->at] == 0xc4 || p->code[p->at] == 0xc5 || p->code[p->at] == 0x62))
		return take_vector_prefix(p);
	p->opcode = p->code[p->at++];
	if (p->opcode != 0x0f)
		return true;
	p->opcode = p->code[p->at++];
	p->map = p->opcode == 0x38 ? 2 : p->opcode == 0x3a ? 3 : 1;
	if (p->map > 1)
		p->opcode = p->code[p->at++];
	return true;
}

static bool take_operand(struct sf_x86_parts *p)
{
	static const uint8_t displacement[] = { 0, 1, 4, 0 };
	unsigned mode, base;

	if (p->at >= p->n)
		return false;
	p->operand = p->code + p->at++;
	mode = *p->operand >> 6;
	base = *p->operand & 7;
	if (mode != 3 && base == RSP) {
		if (p->at >= p->n)
			return false;
		base = p->code[p->at++] & 7;
	}
	p->at += mode == 0 && base == RBP ? 4 : displacement[mode];
	return p->at <= p->n;
}

static char what_follows(const struct sf_x86_parts *p)
{
	return p->map == 3 ? 'b' : p->map == 2 ? 'm' : p->map == 1 ? two_byte[p->opcode] : one_byte[p->opcode];
}

static bool has_operand(char what)
{
	return what == 'm' || what == 'b' || what == 'Z' || what == 'g' || what == 'G';
}

static unsigned number_size(const struct sf_x86_parts *p, char what)
{
	const unsigned z = p->is_short ? 2 : 4;
	const bool has_number = p->operand && (*p->operand >> 3 & 7) < 2;

	switch (what) {
	case '1': case 'b': return 1;
	case '2': return 2;
	case 'e': return 3;
	case '4': return 4;
	case '8': return 8;
	case 'z': case 'Z': return z;
	case 'v': return p->rex & 8 ? 8 : z;
	case 'g': return has_number ? 1 : 0;
	case 'G': return has_number ? z : 0;
	default: return 0;
	}
}

bool sf_x86_take_apart(const uint8_t *code, size_t size, struct sf_x86_parts *ret)
{
	char what;

	*ret = (struct sf_x86_parts){ .code = code, .n = size };
	if (!take_opcode(ret))
		return false;
	what = what_follows(ret);
	if (what == 'x' || (has_operand(what) && !take_operand(ret)))
		return false;
	ret->number = code + ret->at;
	ret->number_size = number_size(ret, what);
	ret->at += ret->number_size;
	return ret->at <= size && ret->at <= SF_X86_MAX_SIZE;
}

/* The registers that an operand names, with their REX bits; memory is none. */
static unsigned operand_register(const struct sf_x86_parts *p)
{
	return *p->operand >> 6 == 3 ? (*p->operand & 7u) | (p->rex & 1u) << 3 : 16;
}

static unsigned other_register(const struct sf_x86_parts *p)
{
	return (*p->operand >> 3 & 7u) | (p->rex & 4u) << 1;
}

/* The displacement of an operand in memory at `base`, alone; false: it is another operand. */
static bool displacement_from(const struct sf_x86_parts *p, unsigned base, int32_t *ret)
{
	const uint8_t *at = p->operand + 1;
	const unsigned mode = *p->operand >> 6;

	if (mode == 3 || (*p->operand & 7u) != base || p->rex & 3)
		return false;
	if (base == RSP && *at++ != 0x24)
		return false;
	if (mode == 0 && base == RBP)
		return false;
	*ret = mode == 1 ? (int8_t)*at : 0;
	if (mode == 2)
		memcpy(ret, at, sizeof(*ret));
	return true;
}

static void push(struct sf_x86_instruction *ret, int64_t value)
{
	ret->effect = value >= INT32_MIN && value <= INT32_MAX ? SF_X86_PUSH : SF_X86_OTHER_SP;
	ret->value = (int32_t)value;
}

/* add and sub of a number to sp; and anything else with 80 to 83 that changes it. */
static void judge_number(const struct sf_x86_parts *p, struct sf_x86_instruction *ret)
{
	const unsigned group = *p->operand >> 3 & 7;
	int32_t value = p->opcode == 0x83 ? (int8_t)*p->number : 0;

	if (operand_register(p) != RSP || group == 7) /* cmp */
		return;
	if (p->opcode == 0x81 && !p->is_short)
		memcpy(&value, p->number, sizeof(value));
	ret->effect = SF_X86_OTHER_SP;
	if (p->rex & 8 && (group == 0 || group == 5))
		push(ret, group == 0 ? -(int64_t)value : value);
}

static void judge_lea(const struct sf_x86_parts *p, struct sf_x86_instruction *ret)
{
	int32_t value;

	if (other_register(p) != RSP)
		return;
	ret->effect = SF_X86_OTHER_SP;
	if (!(p->rex & 8))
		return;
	if (displacement_from(p, RSP, &value)) {
		push(ret, -(int64_t)value);
	} else if (displacement_from(p, RBP, &value)) {
		ret->effect = SF_X86_TO_FP;
		ret->value = value;
	}
}

static void judge_mov(const struct sf_x86_parts *p, struct sf_x86_instruction *ret)
{
	const bool is_store = p->opcode == 0x89;
	const unsigned to = is_store ? operand_register(p) : other_register(p);
	const unsigned from = is_store ? other_register(p) : operand_register(p);
	int32_t place;

	if (is_store && from == RBP && displacement_from(p, RSP, &place) && place == 0)
		ret->effect = SF_X86_STORE_FP;
	else if (to == RSP && !is_store && p->rex & 8 && displacement_from(p, RSP, &ret->value))
		ret->effect = SF_X86_LOAD_SP;
	else if (to == RSP)
		ret->effect = from == RBP ? SF_X86_TO_FP : SF_X86_OTHER_SP;
	else if (to == RBP && from == RSP)
		ret->effect = SF_X86_SET_FP;
	else if (to == RBP && displacement_from(p, RSP, &ret->value))
		ret->effect = SF_X86_LOAD_FP;
	else if (to == RBP && p->rex & 8 && displacement_from(p, RBP, &place) && place == 0)
		ret->effect = SF_X86_RESTORE_FP;
}

static void judge_group5(const struct sf_x86_parts *p, struct sf_x86_instruction *ret)
{
	static const enum sf_x86_effect effects[] = {
		SF_X86_PLAIN, SF_X86_PLAIN, SF_X86_CALL, SF_X86_CALL, SF_X86_JUMP, SF_X86_JUMP, SF_X86_PUSH, SF_X86_PLAIN,
	};

	ret->effect = effects[*p->operand >> 3 & 7];
	ret->value = 8;
	if (ret->effect == SF_X86_PUSH && displacement_from(p, RSP, &ret->value))
		ret->effect = SF_X86_PUSH_COPY;
	if (*p->operand != 0x25) /* jmp *distance(%rip) */
		return;
	ret->is_slot = true;
	memcpy(&ret->distance, p->operand + 1, sizeof(ret->distance));
}

static void judge_relative(const struct sf_x86_parts *p, struct sf_x86_instruction *ret, enum sf_x86_effect effect)
{
	ret->effect = effect;
	ret->has_target = true;
	ret->distance = (int8_t)*p->number;
	if (p->code + p->at == p->number + sizeof(ret->distance))
		memcpy(&ret->distance, p->number, sizeof(ret->distance));
}

/* pop to memory. */
static void judge_pop(const struct sf_x86_parts *p, struct sf_x86_instruction *ret)
{
	int32_t place;

	push(ret, -8);
	if (displacement_from(p, RBP, &place) && place == 8)
		ret->effect = SF_X86_POP_RETURN;
}

/*
 * Whether one of the plain operations has sp as its target: those of 00 to 3f, and others that are met. Of the other maps that
 * is cmov only: their operands are vectors, mostly, and compilers take no sp as a target there.
 */
static bool writes_sp(const struct sf_x86_parts *p)
{
	if (!p->operand)
		return false;
	if (p->map)
		return p->map == 1 && !p->is_vector && p->opcode >> 4 == 4 && other_register(p) == RSP;
	if (p->opcode < 0x38)
		return (p->opcode & 7) < 2 ? operand_register(p) == RSP : other_register(p) == RSP;
	return (p->opcode == 0xc7 || p->opcode == 0x87) && operand_register(p) == RSP;
}

static void judge_one_byte(const struct sf_x86_parts *p, struct sf_x86_instruction *ret)
{
	const unsigned reg = (p->opcode & 7u) | (p->rex & 1u) << 3;

	switch (p->opcode) {
	case 0x50 ... 0x57:
		push(ret, 8);
		ret->effect = reg == RBP ? SF_X86_PUSH_FP : SF_X86_PUSH;
		break;
	case 0x58 ... 0x5f:
		push(ret, reg == RSP ? 0 : -8);
		ret->effect = reg == RBP ? SF_X86_POP_FP : reg == RSP ? SF_X86_LOAD_SP : SF_X86_PUSH;
		break;
	case 0x68: case 0x6a: case 0x9c: push(ret, 8); break;
	case 0x70 ... 0x7f: case 0xe0 ... 0xe3: judge_relative(p, ret, SF_X86_BRANCH); break;
	case 0x8f: judge_pop(p, ret); break;
	case 0x9d: push(ret, -8); break;
	case 0x81: case 0x83: judge_number(p, ret); break;
	case 0x89: case 0x8b: judge_mov(p, ret); break;
	case 0x8d: judge_lea(p, ret); break;
	case 0xc2: case 0xc3: ret->effect = SF_X86_RETURN; break;
	case 0xc8: ret->effect = SF_X86_OTHER_SP; break;
	case 0xc9: ret->effect = SF_X86_LEAVE; break;
	case 0xcc: case 0xf4: ret->effect = SF_X86_JUMP; break;
	case 0xe8: judge_relative(p, ret, SF_X86_CALL); break;
	case 0xe9: case 0xeb: judge_relative(p, ret, SF_X86_JUMP); break;
	case 0xff: judge_group5(p, ret); break;
	default: ret->effect = writes_sp(p) ? SF_X86_OTHER_SP : SF_X86_PLAIN; break;
	}
}

bool sf_x86_decode(const uint8_t *code, size_t size, struct sf_x86_instruction *ret)
{
	struct sf_x86_parts p;

	if (!sf_x86_take_apart(code, size, &p))
		return false;
	*ret = (struct sf_x86_instruction){ .size = (unsigned)p.at };
	if (p.map == 0)
		judge_one_byte(&p, ret);
	else if (p.map == 1 && p.opcode >> 4 == 8)
		judge_relative(&p, ret, SF_X86_BRANCH);
	else if (p.map == 1 && p.opcode == 0x0b) /* ud2 */
		ret->effect = SF_X86_JUMP;
	else if (writes_sp(&p))
		ret->effect = SF_X86_OTHER_SP;
	return true;
}
