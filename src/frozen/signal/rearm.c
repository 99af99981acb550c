/* SPDX-License-Identifier: Apache-2.0 */
/* Setting a thread's clock anew: jitter and back-off. */
#include <linux/perf_event.h>
#include <sys/ioctl.h>
#include <time.h>

#include "frozen/random.h"
#include "frozen/raw.h"
#include "frozen/signal/rearm.h"

#include "frozen/frozen.h"

#define NS_PER_S UINT64_C(1000000000)
#define MAX_BACK_OFF 16
#define EXPIRIES_PER_PERIOD 8

/* Evenly from 3/4 to 5/4, so that the mean is the period. */
static uint64_t with_jitter(struct sf_thread_entry *entry, uint64_t period_ns)
{
	const uint64_t half = period_ns / 2;

	return period_ns - period_ns / 4 + (half ? sf_random(&entry->random) % half : 0);
}

static struct timespec to_timespec(uint64_t ns)
{
	return (struct timespec){ .tv_sec = (time_t)(ns / NS_PER_S),
				   .tv_nsec = (long)(ns % NS_PER_S) };
}

static bool is_perf(const struct sf_thread_entry *entry)
{
	return atomic_load_explicit(&entry->flags, memory_order_relaxed) & SF_ENTRY_PERF;
}

bool sf_rearm_is_remote(const struct sf_handler_config *config, const struct sf_thread_entry *entry)
{
	return config->remote_clocks && is_perf(entry);
}

/*
 * Setting a perf clock costs as much as the rest of the handler (8 us on a virtual machine). So one
 * drawn period is used for several samples. A timer that expires at every tick of the kernel cannot
 * have jitter.
 */
bool sf_rearm_pays(const struct sf_handler_config *config, struct sf_thread_entry *entry,
		   uint64_t period_ns)
{
	if (is_perf(entry))
		return sf_random(&entry->random) % EXPIRIES_PER_PERIOD == 0;
	return period_ns > config->kernel_tick_ns;
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

	if (clock < 0 || next_ns == 0)
		return;
	if (is_perf(entry)) {
		sf_raw3(SYS_ioctl, clock, PERF_EVENT_IOC_PERIOD, &next_ns);
	} else {
		const struct itimerspec time = {
			.it_value = to_timespec(next_ns),
			.it_interval = to_timespec(period_ns),
		};

		sf_raw4(SYS_timer_settime, clock, 0, &time, NULL);
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
