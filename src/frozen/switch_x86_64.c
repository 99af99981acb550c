/* SPDX-License-Identifier: Apache-2.0 */
/* Code that goes to another stack, as Go's systemstack does: it sets sp, and then calls (sf_arch.switches_stack). Signal-safe. */
#include <string.h>

#include "frozen/code_x86_64.h"
#include "frozen/exit_x86_64.h"
#include "frozen/reader.h"

#include "frozen/frozen.h"

/* In so many bytes sp is set. Go's time.now (time_linux_amd64.s) calls twice and multiplies: 81 bytes lie between sp and its return. */
#define BEFORE_CALL 96

/* mov to sp from a register or from memory, with REX.W. */
static bool sets_sp(const uint8_t *code)
{
	return (code[0] & 0xf8) == 0x48 && (code[1] == 0x89 || code[1] == 0x8b);
}

/*
 * Whether the instructions from `code` on end at `end`, and only calls leave this code and come back. *last_ret: the
 * last one.
 */
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

static bool is_other_sp(const struct sf_x86_instruction *next)
{
	return next->effect == SF_X86_OTHER_SP || next->effect == SF_X86_LOAD_SP;
}

/* The first call, return or setting of sp in the code from pc on; plain if there is none nearby. *pc moves behind it. */
static enum sf_x86_effect find_next(const struct sf_reader *reader, uint64_t *pc)
{
	struct sf_x86_instruction next;
	uint8_t code[SF_X86_CHUNK];
	const size_t n = sf_x86_read_code(reader, *pc, code);

	for (size_t at = 0; sf_x86_decode(code + at, n - at, &next);) {
		at += next.size;
		if (next.effect == SF_X86_CALL || next.effect == SF_X86_RETURN || is_other_sp(&next)) {
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
	uint8_t code[SF_X86_CHUNK];
	const size_t n = sf_x86_read_code(reader, pc, code);

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
		    !is_other_sp(&next) || !leads_to(code + i, code + sizeof(code), &last))
			continue;
		*gives_up_ret = !exact && never_returns(reader, pc);
		return exact ? is_still_switched(reader, pc, gives_up_ret) : last == SF_X86_CALL;
	}
	return false;
}

#define CALL_SIZE 5 /* call rel32 */

/* Where the call at `pc` goes to; 0: there is none. */
static uint64_t called_at(const uint8_t *code, uint64_t pc)
{
	int32_t relative;

	memcpy(&relative, code + 1, sizeof(relative));
	return code[0] == 0xe8 ? pc + CALL_SIZE + (uint64_t)(int64_t)relative : 0;
}

/* At any byte: 32 bits that are right by chance are rare. */
uint64_t sf_x86_find_call(const struct sf_reader *reader, uint64_t start, uint64_t end, uint64_t target, bool or_jumps)
{
	uint8_t code[SF_X86_CHUNK];
	size_t n = CALL_SIZE;

	for (; start + CALL_SIZE <= end && n >= CALL_SIZE; start += n - CALL_SIZE + 1) {
		n = sf_x86_read_code(reader, start, code);
		for (size_t i = 0; i + CALL_SIZE <= n && start + i + CALL_SIZE <= end; i++) {
			const uint64_t called = called_at(code + i, start + i);

			if (called && (called == target || (or_jumps && sf_x86_jumps_to(reader, called, target))))
				return start + i + CALL_SIZE;
		}
	}
	return 0;
}
