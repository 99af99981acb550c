/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The clock kind "itimer": one clock for the whole process, like setitimer(ITIMER_PROF). It serves for
 * comparison, and for threads that live too shortly to get a clock of their own. It sends at most HZ
 * signals a second for all threads together. The kernel sends each to a thread that runs at that
 * moment, so threads do not get samples in proportion to their CPU time.
 *
 * Not setitimer itself: an interval timer lives on through exec (setitimer(2)), and the signal's
 * default action would end the next program.
 */
#include <stdatomic.h>
#include <time.h>

#include "agent/clocks/timer.h"
#include "agent/clocks/clocks.h"
#include "frozen/signal/handler.h"
#include "frozen/raw.h"

static _Atomic int32_t process_timer = -1;

static bool check(struct sf_error *err)
{
	return sf_agent_clock_timer.check(err);
}

static bool arm(struct sf_thread_entry *entry, int32_t tid)
{
	int32_t timer;

	(void)entry, (void)tid;
	if (atomic_load(&process_timer) >= 0)
		return true;
	if (!sf_agent_timer_start(CLOCK_PROCESS_CPUTIME_ID, 0, sf_handler.config.period_ns, &timer))
		return false;
	timer = atomic_exchange(&process_timer, timer);
	if (timer >= 0)
		sf_raw1(SYS_timer_delete, timer);
	return true;
}

static void disarm(struct sf_thread_entry *entry)
{
	int32_t timer = atomic_exchange(&process_timer, -1);

	(void)entry;
	if (timer >= 0)
		sf_raw1(SYS_timer_delete, timer);
}

const struct sf_agent_clock_kind sf_agent_clock_itimer = {
	.name = "itimer",
	.summary = "one timer for the process, as setitimer(2) has it: unfair, at most HZ in all",
	.check = check,
	.arm = arm,
	.disarm = disarm,
};
