/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Steps the first thread of a process through its code, and at each instruction has our walker say who called whom. The
 * truth is the list of calls that were stepped over and have not returned: all of them must be on the stack, in their
 * order.
 *
 *     step_callers PID WINDOWS STEPS [to-rules]
 *
 * Steps at WINDOWS moments, so many instructions each time; the thread runs freely in between. A window ends where a
 * signal comes. With to-rules callers are judged up to the first that the rules of a file yield: SBCL's own rules leave
 * out the caller of call_into_lisp_() (src/runtime/x86-64-assem.S of SBCL 2.2.9: the last rule holds before the call,
 * and not after it). Prints a line for each answer that is wrong or cut, and at the end how many there were of each.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "stepping.h"

#define BETWEEN_US 20000
#define MORE_US 10000

enum { RIGHT, GUESSED, WRONG, CUT, N_ANSWERS };

static struct stepping stepping;
static unsigned long answers[N_ANSWERS], elsewhere;
static bool to_rules;

static void complain(const char *what, const struct sf_trace *trace, unsigned depth, unsigned first)
{
	const struct sf_frame *frame = depth + first < trace->n_frames ? &trace->frames[depth + first] : NULL;

	printf("%s at 0x%llx: caller %u is 0x%" PRIx64 ", not 0x%" PRIx64 " by %s\n", what, stepping.regs.rip, depth,
	       stepping_call(&stepping, depth)->pc, frame ? frame->pc : 0, frame ? sf_via_word(frame->via) : "nothing");
}

/* The handler of an exception is a frame that no call leads to. Its callers are the calls that stand. */
static bool is_caught(const struct sf_trace *trace)
{
	return trace->n_frames > 1 && trace->frames[1].via == SF_VIA_HANDLER;
}

static bool is_beyond(const struct sf_trace *trace, unsigned frame)
{
	return to_rules && frame < trace->n_frames && trace->frames[frame].via == SF_VIA_ROWS;
}

static void judge(void)
{
	const struct sf_trace *trace = stepping_walk(&stepping);
	const unsigned first = is_caught(trace) ? 2 : 1;
	unsigned depth = 0;
	bool guessed = false;

	for (; depth < stepping.n_calls && stepping_stands(&stepping, depth) && !is_beyond(trace, depth + first); depth++) {
		const bool cut = depth + first >= trace->n_frames;

		if (cut || trace->frames[depth + first].pc != stepping_call(&stepping, depth)->pc) {
			answers[cut ? CUT : WRONG]++;
			complain(cut ? "cut" : "wrong", trace, depth, first);
			return;
		}
		guessed |= trace->frames[depth + first].via == SF_VIA_GUESS;
	}
	if (depth)
		answers[guessed ? GUESSED : RIGHT]++;
	else
		elsewhere++;
}

/* False: the thread has ended. */
static bool go_through(unsigned long steps)
{
	for (unsigned long i = 0; i < steps && !stepping.signal; i++) {
		if (!stepping_step(&stepping))
			return false;
		if (!stepping.signal)
			judge();
	}
	return true;
}

int main(int argc, char **argv)
{
	bool fine;

	if (argc != 4 && argc != 5)
		return 2;
	to_rules = argc == 5;
	if (!stepping_open(&stepping, atoi(argv[1]), atoi(argv[1])))
		return 1;
	fine = stepping_seize(&stepping) && go_through(strtoul(argv[3], NULL, 10));
	for (unsigned long i = 1; fine && i < strtoul(argv[2], NULL, 10); i++) {
		fine = stepping_run(&stepping);
		usleep(BETWEEN_US + (useconds_t)(i * 7919 % MORE_US));
		fine = fine && stepping_stop(&stepping) && go_through(strtoul(argv[3], NULL, 10));
	}
	stepping_release(&stepping);
	printf("right %lu, guessed right %lu, wrong %lu, cut %lu; elsewhere %lu\n", answers[RIGHT], answers[GUESSED], answers[WRONG],
	       answers[CUT], elsewhere);
	return fine ? 0 : 1;
}
