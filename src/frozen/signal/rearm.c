/* SPDX-License-Identifier: Apache-2.0 */
/* When a thread's next sample by its clock comes: jitter and back-off. */
#include <linux/perf_event.h>

#include "frozen/random.h"
#include "frozen/raw.h"
#include "frozen/signal/rearm.h"

#include "frozen/frozen.h"

#define MAX_BACK_OFF 16
#define EXPIRIES_PER_PERIOD 8

/* Evenly from 3/4 to 5/4, so that the mean is the period. */
static uint64_t with_jitter(struct sf_thread_entry *entry, uint64_t period_ns)
{
	const uint64_t half = period_ns / 2;

	return period_ns - period_ns / 4 + (half ? sf_random(&entry->random) % half : 0);
}

static bool is_perf(const struct sf_thread_entry *entry)
{
	return atomic_load_explicit(&entry->flags, memory_order_relaxed) & SF_ENTRY_PERF;
}

bool sf_rearm_is_remote(const struct sf_handler_config *config, const struct sf_thread_entry *entry)
{
	return config->remote_clocks && is_perf(entry);
}

/* Setting a perf clock costs as much as the rest of the handler (8 us on a virtual machine): one drawn period is for several samples. */
static bool pays(struct sf_thread_entry *entry)
{
	return sf_random(&entry->random) % EXPIRIES_PER_PERIOD == 0;
}

/* A clock backs off only from a period that has been set, not from one that is still to be set. */
bool sf_rearm_is_due(const struct sf_handler_config *config, const struct sf_thread_entry *entry)
{
	return !sf_rearm_is_remote(config, entry) ||
	       atomic_load_explicit(&entry->set_period_ns, memory_order_relaxed) ==
		       atomic_load_explicit(&entry->period_ns, memory_order_relaxed);
}

void sf_rearm(const struct sf_handler_config *config, struct sf_thread_entry *entry, uint64_t period_ns)
{
	const int32_t clock = atomic_load_explicit(&entry->clock, memory_order_relaxed);
	uint64_t next_ns = config->jitter ? with_jitter(entry, period_ns) : period_ns;

	if (clock >= 0 && next_ns)
		sf_raw3(SYS_ioctl, clock, PERF_EVENT_IOC_PERIOD, &next_ns);
}

/* How many rings the period has. A part of a ring becomes a whole one or none at random, so that the mean is the period. */
static uint32_t rings_of(const struct sf_handler_config *config, struct sf_thread_entry *entry, uint64_t period_ns)
{
	const uint64_t next_ns = config->jitter ? with_jitter(entry, period_ns) : period_ns;

	return (uint32_t)((next_ns + sf_random(&entry->random) % config->kernel_tick_ns) / config->kernel_tick_ns);
}

void sf_rearm_first(const struct sf_handler_config *config, struct sf_thread_entry *entry)
{
	const uint64_t rings = config->period_ns / config->kernel_tick_ns;

	entry->rings_passed_over = rings ? (uint32_t)(sf_random(&entry->random) % (rings + 1)) : 0;
}

bool sf_rearm_passes_over(struct sf_thread_entry *entry)
{
	if (is_perf(entry) || !entry->rings_passed_over)
		return false;
	entry->rings_passed_over--;
	return true;
}

void sf_rearm_next(const struct sf_handler_config *config, struct sf_thread_entry *entry, uint64_t present_ns, uint64_t next_ns)
{
	if (!is_perf(entry)) {
		const uint32_t rings = rings_of(config, entry, next_ns);

		entry->rings_passed_over = rings ? rings - 1 : 0;
	} else if (!config->remote_clocks && (next_ns != present_ns || (config->jitter && pays(entry)))) {
		sf_rearm(config, entry, next_ns);
	}
}

uint64_t sf_rearm_period(uint64_t present_ns, uint64_t wanted_ns, uint64_t cost_ns,
			 uint64_t weight_ns)
{
	if (cost_ns > weight_ns / 8 && present_ns <= wanted_ns * (MAX_BACK_OFF / 2))
		return present_ns * 2;
	/* Twice as often it would still cost less than a sixteenth. */
	if (cost_ns < weight_ns / 32 && present_ns / 2 >= wanted_ns)
		return present_ns / 2;
	return present_ns;
}
