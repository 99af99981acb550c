/* SPDX-License-Identifier: Apache-2.0 */
/* Measures an upper bound of each hold, from the clock and from the holding thread's own wait for a CPU. */
#include "capture/ptrace/hold_time.h"

#include <unistd.h>

#include "os/clock.h"

bool sf_hold_time_open(struct sf_hold_time *time, struct sf_error *err)
{
	*time = (struct sf_hold_time){ .free_ns = sf_now_ns() };
	if (!sf_task_open(getpid(), gettid(), &time->self))
		return sf_fail_os(err, "cannot read /proc/self/task/%d/schedstat", (int)gettid());
	return true;
}

void sf_hold_time_close(struct sf_hold_time *time)
{
	sf_task_close(&time->self);
}

/* Our own counts cost as much as the look itself, and threads that are late are looked for often. */
void sf_hold_time_wait(struct sf_hold_time *time, bool may_sleep)
{
	time->may_sleep = may_sleep;
	time->began_ns = sf_now_ns();
	if (may_sleep)
		sf_task_run(&time->self, &time->before);
}

/* When we were woken from the wait that returned then. 0: we did not sleep. */
static uint64_t woken_ns(const struct sf_hold_time *time, uint64_t returned_ns)
{
	struct sf_task_run after;

	if (!time->may_sleep || !sf_task_run(&time->self, &after) || after.switches == time->before.switches)
		return 0;
	return returned_ns - (after.wait_ns - time->before.wait_ns);
}

void sf_hold_time_answer(struct sf_hold_time *time)
{
	time->returned_ns = sf_now_ns();
}

void sf_hold_time_no_answer(struct sf_hold_time *time)
{
	const uint64_t ended_ns = woken_ns(time, sf_now_ns());

	time->free_ns = ended_ns ? ended_ns : time->began_ns;
}

uint64_t sf_hold_time_released(struct sf_hold_time *time, uint64_t asked_ns)
{
	const uint64_t released_ns = sf_now_ns(), stopped_ns = woken_ns(time, time->returned_ns);

	if (stopped_ns)
		time->free_ns = stopped_ns;
	time->stood_ns = stopped_ns ? stopped_ns : time->returned_ns;
	return released_ns - (time->free_ns > asked_ns ? time->free_ns : asked_ns);
}
