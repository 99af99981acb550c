/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What rings for a thread's CPU time. Each kind arms one thread (or the process) so that our
 * signal comes about every seat->period_ns of CPU time; how much CPU time a sample speaks for is
 * read from the thread's own clock, so a kind that rings late or seldom loses precision, not time.
 *
 * To add one: a line in sf_agent_clocks, its functions in a file clock_NAME.c, its word in
 * docs/engines.md.
 */
#ifndef SF_AGENT_CLOCKS_H
#define SF_AGENT_CLOCKS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "frozen/seats.h"

struct sf_agent_clock_kind {
	const char *name;        /* as in cpu-clock=NAME */
	const char *summary;     /* one line, for docs and doctor */
	bool per_thread;         /* else one for the process, armed with tid 0 and no seat */
	bool is_perf;            /* seat->clock is a descriptor */

	/* Whether it works here; if not, why. Leaves nothing behind. */
	bool (*check)(struct sf_error *err);
	/*
	 * Why it is not taken unasked although it works, for people; NULL: it is. May be NULL
	 * itself.
	 */
	const char *(*drawback)(void);
	/*
	 * Rings for this thread from now on, every seat->period_ns; sf_inside's pid, cookie and
	 * signal are set. False: gone, or no more to be had (then the next kind is tried for it).
	 */
	bool (*arm)(struct sf_seat *seat, int32_t tid);
	/* Any thread, also when it was disarmed already: one of them does it. */
	void (*disarm)(struct sf_seat *seat);
};

/* Most precise first, NULL at the end: perf, timer, itimer, tick. */
extern const struct sf_agent_clock_kind *const sf_agent_clocks[];
extern const struct sf_agent_clock_kind sf_agent_clock_perf, sf_agent_clock_timer,
	sf_agent_clock_itimer, sf_agent_clock_tick;

/*
 * A thread's clock: of `kind`, or where there is no more of it a timer. False: the thread is gone.
 */
bool sf_agent_clock_arm(const struct sf_agent_clock_kind *kind, struct sf_seat *seat, int32_t tid);
/* Whatever it has. Signals that it sent already may still come. */
void sf_agent_clock_disarm(struct sf_seat *seat);
/*
 * For the sampler, now and then, while a thread runs: where handlers cannot set its clock
 * (sf_inside.clocks_apart) it is set here, with jitter, to what the handler asked for; unless it
 * is to ring less often, as often as that is cheap: *spared_ns, 0 at first, says when again.
 */
void sf_agent_clock_tune(struct sf_seat *seat, uint64_t now_ns, uint64_t *spared_ns);
/*
 * False: the program has closed our descriptor. Then it is forgotten, and arming gives another
 * clock.
 */
bool sf_agent_clock_lives(struct sf_seat *seat);

/*
 * The kind to use: the one asked for (1 + its place), or with 0 the cheapest that works and leaves
 * room for the target.
 */
const struct sf_agent_clock_kind *sf_agent_clock_choose(int wanted, struct sf_error *err);
/*
 * For threads that run between the kernel's ticks, so that their timers do not ring as they should;
 * `wanted` as above. NULL: none that works here, or the user chose one for all.
 */
const struct sf_agent_clock_kind *sf_agent_clock_between_ticks(int wanted);
/* How far apart the kernel's ticks are, 1/HZ; 0: it does not say. */
uint64_t sf_agent_clock_tick_ns(void);

#endif
