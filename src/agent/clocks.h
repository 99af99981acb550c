/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What rings for a thread's CPU time. Each kind arms one thread (or the process) so that our signal
 * comes about every seat->period_ns of CPU time; how much CPU time a sample speaks for is read from the
 * thread's own clock, so a kind that rings late or seldom loses precision, not time.
 *
 * To add one: a line in sf_agent_clocks, its functions in a file clock_NAME.c, its word in docs/engines.md.
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
	bool per_thread;         /* else one for the process, armed with tid 0 */
	bool is_perf;            /* seat->clock is a descriptor */

	/* Whether it works here; if not, why. Leaves nothing behind. */
	bool (*check)(struct sf_error *err);
	/* Rings for this thread from now on. False: gone, or no more to be had (then the next kind is tried for it). */
	bool (*arm)(struct sf_seat *seat, int32_t tid);
	void (*disarm)(struct sf_seat *seat);
};

/* Best first, NULL at the end: perf, timer, itimer, tick. */
extern const struct sf_agent_clock_kind *const sf_agent_clocks[];

/* The kind to use: the one asked for (1 + its place), or with 0 the best that works and leaves room for the target. */
const struct sf_agent_clock_kind *sf_agent_clock_choose(int wanted, struct sf_error *err);

/*
 * From our handler, after a sample: the next period of the calling thread's clock, with jitter. Signal-safe;
 * the handler calls it through sf_inside.rearm. Frozen part: frozen/rearm.c.
 */
void sf_rearm(struct sf_seat *seat, uint64_t period_ns);

#endif
