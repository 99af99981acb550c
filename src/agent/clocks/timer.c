/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A timer on the CPU clock of one thread that signals that thread (timer_create(2),
 * SIGEV_THREAD_ID). It works everywhere and needs no descriptor. The kernel looks at such timers
 * at its own ticks, HZ times a second, and the timer rings at each tick at which the thread runs. The
 * handler decides which rings have samples (frozen/signal/rearm.h). Where more samples are wanted than
 * there are ticks, each stands for several periods: the weights say so.
 *
 * By raw system calls: libc's timer_create knows the clocks of other threads only by their
 * pthread_t.
 */

#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <time.h>

#include "agent/clocks/clocks.h"
#include "frozen/child.h"
#include "frozen/signal/handler.h"
#include "frozen/signal/rearm.h"
#include "frozen/raw.h"

#define NS_PER_S 1000000000u
#define RING_NS 1000u /* of CPU time between two rings at the least: far less than a tick */

#ifndef sigev_notify_thread_id
#define sigev_notify_thread_id _sigev_un._tid
#endif

/* The number of a thread's CPU clock (kernel: include/linux/posix-timers_types.h, MAKE_THREAD_CPUCLOCK with CPUCLOCK_SCHED) */
static int32_t clock_of(int32_t tid)
{
	return (int32_t)((~(uint32_t)tid << 3) | 6);
}

bool sf_agent_thread_cpu(int32_t tid, uint64_t *ns_ret)
{
	struct timespec time;

	if (sf_raw2(SYS_clock_gettime, clock_of(tid), &time) != 0)
		return false;
	*ns_ret = (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
	return true;
}

static struct timespec as_timespec(uint64_t ns)
{
	return (struct timespec){ .tv_sec = (time_t)(ns / NS_PER_S),
				  .tv_nsec = (long)(ns % NS_PER_S) };
}

/* Starts a timer that signals this thread (0: the process). False: the thread has ended, or no timer is left. */
static bool start(int32_t clock, int32_t tid, uint64_t period_ns, int32_t *ret)
{
	struct itimerspec when = { .it_value = as_timespec(period_ns),
				   .it_interval = as_timespec(period_ns) };
	uint64_t value = sf_handler_value(sf_handler.config.cookie, SF_NO_SLOT, 0);
	struct sigevent event = { .sigev_signo = sf_handler.config.signal };

	event.sigev_notify = tid ? SIGEV_THREAD_ID : SIGEV_SIGNAL;
	if (tid)
		event.sigev_notify_thread_id = tid;
	memcpy(&event.sigev_value, &value, sizeof(value));
	if (sf_raw3(SYS_timer_create, clock, &event, ret) != 0)
		return false;
	if (sf_raw4(SYS_timer_settime, *ret, 0, &when, NULL) == 0)
		return true;
	sf_raw1(SYS_timer_delete, *ret);
	return false;
}

static bool check(struct sf_error *err)
{
	struct sigevent event = { .sigev_notify = SIGEV_NONE };
	int32_t timer;
	long result = sf_raw3(SYS_timer_create, CLOCK_THREAD_CPUTIME_ID, &event, &timer);

	if (result == 0) {
		sf_raw1(SYS_timer_delete, timer);
		return true;
	}
	errno = (int)-result;
	sf_fail_os(err, "cannot create a timer");
	return sf_fail_hint(err, "cpu-clock=tick needs none.");
}

static bool arm(struct sf_thread_entry *entry, int32_t tid)
{
	int32_t timer;

	/* Before the first signal: the handler reads this flag to interpret entry->clock. */
	atomic_fetch_and(&entry->flags, ~(uint32_t)SF_ENTRY_PERF);
	sf_rearm_first(&sf_handler.config, entry);
	if (!start(clock_of(tid), tid, RING_NS, &timer))
		return false;
	atomic_store(&entry->clock, timer);
	return true;
}

static void disarm(struct sf_thread_entry *entry)
{
	int32_t timer = atomic_exchange(&entry->clock, -1);

	if (timer >= 0)
		sf_raw1(SYS_timer_delete, timer);
}

const struct sf_agent_clock_kind sf_agent_clock_timer = {
	.name = "timer",
	.per_thread = true,
	.check = check,
	.arm = arm,
	.disarm = disarm,
};

/* --- one timer for the process --- */

/*
 * The kind "itimer" is like setitimer(ITIMER_PROF). It serves for comparison, and for threads that live
 * too shortly to get a clock of their own. It sends at most HZ signals a second for all threads
 * together. The kernel sends each to a thread that runs at that moment, so threads do not get samples
 * in proportion to their CPU time. It is not setitimer itself: an interval timer lives on through exec
 * (setitimer(2)), and the signal's default action would end the next program.
 */
SF_CHILD_DATA static _Atomic int32_t process_timer = -1;

static void disarm_process(struct sf_thread_entry *entry)
{
	int32_t timer = atomic_exchange(&process_timer, -1);

	(void)entry;
	if (timer >= 0)
		sf_raw1(SYS_timer_delete, timer);
}

SF_CHILD_CODE void sf_agent_clock_process_forked(void)
{
	atomic_store(&process_timer, -1);
}

static bool arm_process(struct sf_thread_entry *entry, int32_t tid)
{
	int32_t timer;

	(void)entry, (void)tid;
	if (atomic_load(&process_timer) >= 0)
		return true;
	if (!start(CLOCK_PROCESS_CPUTIME_ID, 0, sf_handler.config.period_ns, &timer))
		return false;
	timer = atomic_exchange(&process_timer, timer);
	if (timer >= 0)
		sf_raw1(SYS_timer_delete, timer);
	return true;
}

const struct sf_agent_clock_kind sf_agent_clock_itimer = {
	.name = "itimer",
	.check = check,
	.arm = arm_process,
	.disarm = disarm_process,
};

/* --- coverage: a thread's number of samples beside its CPU time --- */

/*
 * Of so many that come at random less than half is met once in a thousand times: in a minute of CPU time at 250 ticks a
 * second there are 470 of those. Twice in a row is one in a million.
 */
#define JUDGED_RINGS 32
/* Of so many at random none is met once in 500 million times: with 250 samples a second in 23 days of CPU time. */
#define JUDGED_SILENT 20

void sf_timer_coverage_begin(struct sf_timer_coverage *coverage, uint64_t cpu_ns, uint64_t n_samples)
{
	*coverage = (struct sf_timer_coverage){ .cpu_ns = cpu_ns, .n_samples = n_samples, .sampled_ns = cpu_ns, .n_sampled = n_samples };
}

static bool is_silent(struct sf_timer_coverage *coverage, uint64_t cpu_ns, uint64_t n_samples, uint64_t period_ns)
{
	if (n_samples != coverage->n_sampled) {
		coverage->n_sampled = n_samples;
		coverage->sampled_ns = cpu_ns;
	}
	return cpu_ns - coverage->sampled_ns >= JUDGED_SILENT * period_ns;
}

static bool is_seldom(struct sf_timer_coverage *coverage, uint64_t cpu_ns, uint64_t n_samples, uint64_t period_ns)
{
	const uint64_t used_ns = cpu_ns - coverage->cpu_ns;
	const bool was_seldom = coverage->was_seldom;

	if (used_ns < JUDGED_RINGS * period_ns)
		return false;
	coverage->was_seldom = 2 * period_ns * (n_samples - coverage->n_samples) < used_ns;
	coverage->cpu_ns = cpu_ns;
	coverage->n_samples = n_samples;
	return coverage->was_seldom && was_seldom;
}

bool sf_timer_misses(struct sf_timer_coverage *coverage, uint64_t cpu_ns, uint64_t n_samples, uint64_t period_ns)
{
	const bool seldom = is_seldom(coverage, cpu_ns, n_samples, period_ns);

	return is_silent(coverage, cpu_ns, n_samples, period_ns) || seldom;
}
