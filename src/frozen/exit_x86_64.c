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
