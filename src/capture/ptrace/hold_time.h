/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How long a thread was held. It stands from some moment while we sleep; the kernel does not say
 * which. But it counts how long we ourselves waited for a CPU once we were woken, and we are woken by
 * the first stop: so the thread stood at most since (now - that wait). When we did not sleep, the thread stood at most since
 * the last moment at which none did: several may stand at once, and each is answered by itself. Both are upper bounds, give or
 * take a microsecond, also where we wait for a CPU between the wait and the look at the clock.
 *
 * One per holding thread.
 */
#ifndef SF_CAPTURE_PTRACE_HOLD_TIME_H
#define SF_CAPTURE_PTRACE_HOLD_TIME_H

#include <stdint.h>

#include "os/task.h"

struct sf_hold_time {
	struct sf_task self;
	struct sf_task_run before;
	bool may_sleep;          /* in the wait for the present answer */
	uint64_t began_ns;       /* when that wait began */
	uint64_t free_ns;        /* no thread stood at this time that has not been released */
	uint64_t returned_ns;    /* when the wait for the present answer was over */
	uint64_t stood_ns;       /* of the present answer, once it is released: when the thread stood, as far as is known */
};

bool sf_hold_time_open(struct sf_hold_time *time, struct sf_error *err);
void sf_hold_time_close(struct sf_hold_time *time);

/* Just before the wait for an answer, or before a look whether there is one; and just after it, if there is one or none. */
void sf_hold_time_wait(struct sf_hold_time *time, bool may_sleep);
void sf_hold_time_answer(struct sf_hold_time *time);
void sf_hold_time_no_answer(struct sf_hold_time *time);

/* After the release: how long the thread was held at most. It was asked for at asked_ns. */
uint64_t sf_hold_time_released(struct sf_hold_time *time, uint64_t asked_ns);

#endif
