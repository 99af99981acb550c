/* SPDX-License-Identifier: Apache-2.0 */
/* Looks at the scheduling of the program's threads, and sets the sampler's. No lock, no allocation. */
#include "agent/sampler/priority.h"

#include <sched.h>

#include "frozen/raw.h"

#define SCHED_DEADLINE_POLICY 6
#define HIGHEST 99       /* of SCHED_FIFO; a deadline goes before it */
#define N_LOWER 200      /* ten seconds, at 20 rounds a second */

/* sched_setattr(2) */
struct attr {
	uint32_t size, policy;
	uint64_t flags;
	int32_t nice;
	uint32_t priority;
	uint64_t runtime, deadline, period;
};

static bool set(struct attr attr)
{
	attr.size = sizeof(attr);
	return sf_raw3(SYS_sched_setattr, 0, &attr, 0) == 0;
}

/*
 * Two means: a nice value below everyone else's (root or CAP_SYS_NICE), and a short slice, which gives an early
 * deadline and needs no right (since Linux 6.12; kernel: Documentation/scheduler/sched-eevdf.rst).
 */
static void be_ordinary(void)
{
	if (!set((struct attr){ .policy = SCHED_OTHER, .nice = -20, .runtime = 100000 }))
		set((struct attr){ .policy = SCHED_OTHER, .runtime = 100000 });
}

void sf_priority_init(struct sf_priority *priority)
{
	*priority = (struct sf_priority){ 0 };
	be_ordinary();
}

void sf_priority_see(struct sf_priority *priority, int32_t tid)
{
	struct attr attr = { 0 };
	uint32_t theirs = 0;

	if (sf_raw4(SYS_sched_getattr, tid, &attr, sizeof(attr), 0) != 0)
		return;
	if (attr.policy == SCHED_FIFO || attr.policy == SCHED_RR)
		theirs = attr.priority;
	else if (attr.policy == SCHED_DEADLINE_POLICY)
		theirs = HIGHEST;
	if (theirs > priority->highest)
		priority->highest = theirs;
}

/* Where that is refused it stays as it is, and is not tried again for the same priority. */
static void take(struct sf_priority *priority, uint32_t to)
{
	if (to)
		set((struct attr){ .policy = SCHED_FIFO, .priority = to });
	else
		be_ordinary();
	priority->own = to;
	priority->n_lower = 0;
}

void sf_priority_settle(struct sf_priority *priority)
{
	if (priority->highest > priority->own)
		take(priority, priority->highest);
	else if (priority->highest == priority->own)
		priority->n_lower = 0;
	else if (++priority->n_lower >= N_LOWER)
		take(priority, priority->highest);
	priority->highest = 0;
}
