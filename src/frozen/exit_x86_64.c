/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How a function is left, from its code behind pc: struct sf_exit. Signal-safe. The instructions are read one after another up
 * to the first return, and their effects on sp are added up. At a return, sp points to the return address. So the sum says
 * where that is now.
 */
#include "frozen/arch.h"
#include "frozen/code_x86_64.h"
#include "frozen/exit_x86_64.h"
#include "frozen/reader.h"

#include "frozen/frozen.h"

#define MAX_CODE 2048 /* bytes behind pc */
#define CHUNK 256

struct sweep {
	int64_t taken;       /* from sp since pc */
	int64_t saved_fp;    /* bytes above sp at pc; below 0: not saved */
	bool has_pushed_fp;
	bool is_straight;    /* no call and no jump so far: this is the code of one function for sure */
	bool has_lost_sp;    /* it was set to something unknown, as alloca does */
};

/* `push %rbp; mov %rsp, %rbp` lies ahead, all of it or the second half: the function has just begun. */
static bool begins_at_pc(const struct sweep *sweep, struct sf_exit *ret)
{
	const bool is_ahead = sweep->has_pushed_fp && sweep->taken == 8;
	const bool is_between = !sweep->has_pushed_fp && sweep->taken == 0;

	*ret = (struct sf_exit){ .size = is_ahead ? 0 : 8, .saved_fp = is_ahead ? -1 : 0 };
	return sweep->is_straight && (is_ahead || is_between);
}

static bool returns(const struct sweep *sweep, struct sf_exit *ret)
{
	const bool is_saved = sweep->saved_fp >= 0 && sweep->saved_fp < -sweep->taken;

	*ret = (struct sf_exit){ .size = (int32_t)-sweep->taken, .saved_fp = is_saved ? (int32_t)sweep->saved_fp : -1 };
	return !sweep->has_lost_sp && sweep->taken <= 0;
}

enum progress { GOES_ON, FOUND, UNKNOWN };

static enum progress follow(struct sweep *sweep, const struct sf_x86_instruction *next, struct sf_exit *ret)
{
	switch (next->effect) {
	case SF_X86_PLAIN:
		return GOES_ON;
	case SF_X86_PUSH_FP:
		sweep->has_pushed_fp = true;
		sweep->taken += 8;
		return GOES_ON;
	case SF_X86_PUSH:
		sweep->taken += next->value;
		return GOES_ON;
	case SF_X86_POP_FP:
		sweep->saved_fp = -sweep->taken;
		sweep->taken -= 8;
		return GOES_ON;
	case SF_X86_LOAD_FP:
		sweep->saved_fp = next->value - sweep->taken;
		return GOES_ON;
	case SF_X86_SET_FP:
		return begins_at_pc(sweep, ret) ? FOUND : UNKNOWN;
	case SF_X86_TO_FP:
	case SF_X86_LEAVE:
		*ret = (struct sf_exit){ .is_by_fp = true };
		return FOUND;
	case SF_X86_RETURN:
		return returns(sweep, ret) ? FOUND : UNKNOWN;
	case SF_X86_CALL:
	case SF_X86_JUMP:
		sweep->is_straight = false;
		return GOES_ON;
	case SF_X86_OTHER_SP:
		sweep->has_lost_sp = true;
		return GOES_ON;
	}
	return UNKNOWN;
}

/* As much as can be read of the next bytes: code ends somewhere. */
static size_t read_code(const struct sf_reader *reader, uint64_t pc, uint8_t code[CHUNK])
{
	size_t n = 0;

	if (sf_read(reader, code, pc, CHUNK))
		return CHUNK;
	for (size_t more = CHUNK / 2; more; more /= 2)
		n += sf_read(reader, code + n, pc + n, more) ? more : 0;
	return n;
}

bool sf_x86_find_exit(const struct sf_reader *reader, uint64_t pc, struct sf_exit *ret)
{
	struct sweep sweep = { .saved_fp = -1, .is_straight = true };
	enum progress progress = GOES_ON;
	struct sf_x86_instruction next;
	uint8_t code[CHUNK];
	size_t n = 0, at = 0;

	for (uint64_t done = 0; progress == GOES_ON && done < MAX_CODE; done += next.size) {
		if (n - at < SF_X86_MAX_SIZE) {
			n = read_code(reader, pc + done, code);
			at = 0;
		}
		if (!sf_x86_decode(code + at, n - at, &next))
			return false;
		at += next.size;
		progress = follow(&sweep, &next, ret);
	}
	return progress == FOUND;
}

#define BEFORE_CALL 64 /* bytes in which sp is set */

/* mov to sp from a register or from memory, with REX.W. */
static bool sets_sp(const uint8_t *code)
{
	return (code[0] & 0xf8) == 0x48 && (code[1] == 0x89 || code[1] == 0x8b);
}

/* Whether the instructions from `code` on end at `end`, and only calls leave this code and come back. *last_ret: the last one. */
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

/* The first call, return or setting of sp in the code from pc on; plain if there is none nearby. *pc moves behind it. */
static enum sf_x86_effect find_next(const struct sf_reader *reader, uint64_t *pc)
{
	struct sf_x86_instruction next;
	uint8_t code[CHUNK];
	const size_t n = read_code(reader, *pc, code);

	for (size_t at = 0; sf_x86_decode(code + at, n - at, &next);) {
		at += next.size;
		if (next.effect == SF_X86_CALL || next.effect == SF_X86_RETURN || next.effect == SF_X86_OTHER_SP) {
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
	uint8_t code[CHUNK];
	const size_t n = read_code(reader, pc, code);

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
		    next.effect != SF_X86_OTHER_SP || !leads_to(code + i, code + sizeof(code), &last))
			continue;
		*gives_up_ret = !exact && never_returns(reader, pc);
		return exact ? is_still_switched(reader, pc, gives_up_ret) : last == SF_X86_CALL;
	}
	return false;
}
