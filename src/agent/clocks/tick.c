/* SPDX-License-Identifier: Apache-2.0 */
/*
 * No clock at all: at its own ticks the sampler asks the threads whose CPU time has moved
 * (sampler.h). For systems on which no timer is to be had, and for clock=wall.
 */
#include "agent/clocks/clocks.h"

static bool check(struct sf_error *err)
{
	(void)err;
	return true;
}

static bool arm(struct sf_thread_entry *entry, int32_t tid)
{
	(void)entry, (void)tid;
	return true;
}

static void disarm(struct sf_thread_entry *entry)
{
	(void)entry;
}

const struct sf_agent_clock_kind sf_agent_clock_tick = {
	.name = "tick",
	.summary = "none: the sampler asks the threads that ran, at its own ticks",
	.per_thread = true,
	.check = check,
	.arm = arm,
	.disarm = disarm,
};
