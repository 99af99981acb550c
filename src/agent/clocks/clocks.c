/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The kinds of CPU clocks: which one is used, and arming, tuning and disarming a thread's clock.
 * The functions of perf clocks are in perf.c, those of timers in timer.c.
 */
#include "agent/clocks/clocks.h"

#include <stddef.h>
#include <stdatomic.h>
#include <time.h>

#include "frozen/signal/handler.h"
#include "frozen/raw.h"
#include "frozen/signal/rearm.h"

/*
 * The kernel sets a perf clock on the CPU of its thread, and the caller spins until that CPU has answered. A virtual CPU
 * that does not run at that moment takes milliseconds to answer: in one compiler this was 5 % of all CPU time. So setting
 * one clock may take at most 1/SHARE of the sampler's time. Only a change to a longer period is made at once.
 */
#define SHARE 1000

#define COMMON_TICK_NS UINT64_C(4000000) /* where the kernel does not say it */

/* No clock: at its own ticks the sampler requests the threads whose CPU time has moved (sampler.h). */
const struct sf_agent_clock_kind sf_agent_clock_tick = {
	.name = "tick",
	.per_thread = true,
};

const struct sf_agent_clock_kind *const sf_agent_clocks[] = {
	&sf_agent_clock_perf,
	&sf_agent_clock_timer,
	&sf_agent_clock_itimer,
	&sf_agent_clock_tick,
	NULL,
};

/*
 * The order of the default. A timer expires in an interrupt that comes in any case; a perf clock has one of its
 * own, which on a virtual machine costs its thread 20 to 40 us each (docs/benchmarks.md). A timer does
 * not sample threads that run between the kernel's ticks; they get
 * sf_agent_clock_between_ticks.
 */
static const struct sf_agent_clock_kind *const cheapest_first[] = {
	&sf_agent_clock_timer,
	&sf_agent_clock_perf,
	&sf_agent_clock_tick,
	NULL,
};

static bool works(const struct sf_agent_clock_kind *kind, struct sf_error *err)
{
	return !kind->check || kind->check(err);
}

const struct sf_agent_clock_kind *sf_agent_clock_choose(int wanted, struct sf_error *err)
{
	const struct sf_agent_clock_kind *kind;

	if (wanted > 0) {
		kind = sf_agent_clocks[wanted - 1];
		return works(kind, err) ? kind : NULL;
	}
	for (int i = 0; (kind = cheapest_first[i]); i++) {
		if ((!kind->drawback || !kind->drawback()) && works(kind, err))
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

	return clock_getres(CLOCK_MONOTONIC_COARSE, &tick) == 0 && tick.tv_nsec ? (uint64_t)tick.tv_nsec : COMMON_TICK_NS;
}

bool sf_agent_clock_arm(const struct sf_agent_clock_kind *kind, struct sf_thread_entry *entry, int32_t tid)
{
	atomic_store(&entry->period_ns, sf_handler.config.period_ns);
	atomic_store(&entry->set_period_ns, sf_handler.config.period_ns);
	if (!kind->arm || kind->arm(entry, tid))
		return true;
	return kind != &sf_agent_clock_timer && sf_agent_clock_timer.arm(entry, tid);
}

static bool has_perf(const struct sf_thread_entry *entry)
{
	return atomic_load(&entry->flags) & SF_ENTRY_PERF;
}

void sf_agent_clock_disarm(struct sf_thread_entry *entry)
{
	(has_perf(entry) ? &sf_agent_clock_perf : &sf_agent_clock_timer)->disarm(entry);
}

void sf_agent_clock_forked(struct sf_thread_entry *entry)
{
	if (has_perf(entry))
		sf_agent_clock_perf_forked(entry);
	else
		atomic_store(&entry->clock, -1);
}

bool sf_agent_clock_lives(struct sf_thread_entry *entry)
{
	if (!has_perf(entry) || sf_agent_clock_perf_lives(entry))
		return true;
	sf_agent_clock_disarm(entry);
	return false;
}

void sf_agent_clock_tune(struct sf_thread_entry *entry, uint64_t now_ns, bool rang, uint64_t *spared_ns)
{
	const uint64_t period_ns = atomic_load(&entry->period_ns);
	const uint64_t set_ns = atomic_load(&entry->set_period_ns);
	uint64_t before_ns;

	if (!sf_rearm_is_remote(&sf_handler.config, entry) || atomic_load(&entry->clock) < 0 ||
	    (period_ns == set_ns && !(sf_handler.config.jitter && rang)) || (period_ns <= set_ns && now_ns < *spared_ns))
		return;
	before_ns = sf_raw_thread_cpu_ns();
	sf_rearm(&sf_handler.config, entry, period_ns);
	*spared_ns = now_ns + (sf_raw_thread_cpu_ns() - before_ns) * SHARE;
	atomic_store(&entry->set_period_ns, period_ns);
}
