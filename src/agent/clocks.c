/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/clocks.h"

#include <stddef.h>
#include <stdatomic.h>
#include <time.h>

#include "agent/clock_perf.h"
#include "frozen/inside.h"
#include "frozen/raw.h"
#include "frozen/rearm.h"

/*
 * The kernel sets a perf clock on the CPU of its thread, and whoever asks spins until that CPU has answered. Where that is a virtual
 * one that does not run just then it takes milliseconds: in one javac it was 5 % of all CPU time. So where only jitter
 * asks for it, it takes one part of so many; what it may have taken is saved up for so long.
 */
#define JITTER_SHARE 400
#define JITTER_BURST_NS UINT64_C(200000000)

const struct sf_agent_clock_kind *const sf_agent_clocks[] = {
	&sf_agent_clock_perf,
	&sf_agent_clock_timer,
	&sf_agent_clock_itimer,
	&sf_agent_clock_tick,
	NULL,
};

/*
 * Cheapest first. A timer rings in an interrupt that comes in any case; a perf clock has one of its
 * own, which on a virtual machine costs its thread 20 to 40 us each (docs/benchmarks.md). What a
 * timer does not see, threads that run between the kernel's ticks, sf_agent_clock_between_ticks is
 * for.
 */
static const struct sf_agent_clock_kind *const unasked[] = {
	&sf_agent_clock_timer,
	&sf_agent_clock_perf,
	&sf_agent_clock_tick,
	NULL,
};

static const struct sf_agent_clock_kind *kind_at(int place)
{
	for (int i = 0; sf_agent_clocks[i]; i++) {
		if (i == place)
			return sf_agent_clocks[i];
	}
	return NULL;
}

const struct sf_agent_clock_kind *sf_agent_clock_choose(int wanted, struct sf_error *err)
{
	const struct sf_agent_clock_kind *kind;

	if (wanted > 0) {
		kind = kind_at(wanted - 1);
		if (!kind) {
			sf_fail(err, SF_E_INPUT, "there is no clock %d", wanted);
			return NULL;
		}
		return kind->check(err) ? kind : NULL;
	}
	for (int i = 0; (kind = unasked[i]); i++) {
		if ((!kind->drawback || !kind->drawback()) && kind->check(err))
			return kind;
	}
	return NULL;
}

const struct sf_agent_clock_kind *sf_agent_clock_between_ticks(int wanted)
{
	const struct sf_agent_clock_kind *perf = &sf_agent_clock_perf;

	return wanted == 0 && !perf->drawback() ? perf : NULL;
}

uint64_t sf_agent_clock_tick_ns(void)
{
	struct timespec tick;

	return clock_getres(CLOCK_MONOTONIC_COARSE, &tick) == 0 ? (uint64_t)tick.tv_nsec : 0;
}

bool sf_agent_clock_arm(const struct sf_agent_clock_kind *kind, struct sf_seat *seat, int32_t tid)
{
	atomic_store(&seat->period_ns, sf_inside.period_ns);
	atomic_store(&seat->set_ns, sf_inside.period_ns);
	if (kind->arm(seat, tid))
		return true;
	return kind != &sf_agent_clock_timer && sf_agent_clock_timer.arm(seat, tid);
}

static bool has_perf(const struct sf_seat *seat)
{
	return atomic_load(&seat->flags) & SF_SEAT_PERF;
}

void sf_agent_clock_disarm(struct sf_seat *seat)
{
	(has_perf(seat) ? &sf_agent_clock_perf : &sf_agent_clock_timer)->disarm(seat);
}

bool sf_agent_clock_lives(struct sf_seat *seat)
{
	if (!has_perf(seat) || sf_agent_clock_perf_lives(seat))
		return true;
	sf_agent_clock_disarm(seat);
	return false;
}

/* The sampler's alone: until when no clock is set for jitter, where that is not in the past. */
static uint64_t jitter_ns;

static void pay_for_jitter(uint64_t now_ns, uint64_t cost_ns)
{
	if (now_ns > JITTER_BURST_NS && jitter_ns < now_ns - JITTER_BURST_NS)
		jitter_ns = now_ns - JITTER_BURST_NS;
	jitter_ns += cost_ns * JITTER_SHARE;
}

void sf_agent_clock_tune(struct sf_seat *seat, uint64_t now_ns)
{
	const uint64_t period_ns = atomic_load(&seat->period_ns);
	const bool changed = atomic_load(&seat->set_ns) != period_ns;
	uint64_t before_ns;

	if (!sf_rearm_is_remote(seat) || atomic_load(&seat->clock) < 0 ||
	    (!changed && (!sf_inside.jitter || now_ns < jitter_ns)))
		return;
	before_ns = sf_raw_thread_cpu_ns();
	sf_rearm(seat, period_ns);
	pay_for_jitter(now_ns, sf_raw_thread_cpu_ns() - before_ns);
	atomic_store(&seat->set_ns, period_ns);
}
