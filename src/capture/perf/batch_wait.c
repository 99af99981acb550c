/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The wait between two batches: until a ring is half full, or for as long as the rate allows.
 *
 * When a thread ends that has inherited an event, the kernel wakes the thread that polls the event's ring, and that poll
 * goes on (perf_event_exit_event() and ring_buffer_wakeup() in the kernel's kernel/events). The wake-up takes CPU time of
 * the thread that ends. So where many threads end, the rings are not polled, but looked at now and then.
 */
#include <string.h>

#include "capture/perf/perf.h"
#include "os/clock.h"
#include "os/cpu.h"
#include "os/perf_events.h"

#define BATCH_NS 20000000           /* between two batches at the least, unless a ring is half full ... */
#define BATCH_NS_MAX 50000000       /* ... and at the most: a process that has ended can no longer be read */
#define BEGIN_NS 1000000000         /* of a recording: ... */
#define BATCH_NS_BEGIN 10000000     /* ... copies of sleeps that are too short are soon replaced, and holes in stacks filled */
#define BATCH_SAMPLES 10            /* in a batch, where the CPUs are busy: a batch costs some of them */
#define DRAIN_NS 1000000            /* at the least: a ring that fills at once is no reason to do nothing else */
#define LOOK_NS 2000000             /* between two looks at the rings, where more than one thread ends in this time */

#define N_KINDS 4                   /* of events that have rings of their own */

/* To add one: an item here, and N_KINDS. */
static const struct sf_perf_events *kind_of(const struct sf_perf *perf, size_t i)
{
	const struct sf_perf_events *const kinds[N_KINDS] = { &perf->events, &perf->sleeps.switches, &perf->sleeps.wakings, &perf->signals.events };

	return kinds[i];
}

static bool is_half_full(const struct sf_perf *perf)
{
	for (size_t i = 0; i < N_KINDS; i++) {
		if (sf_perf_events_are_half_full(kind_of(perf, i)))
			return true;
	}
	return false;
}

static void poll_rings(const struct sf_perf *perf, uint64_t until_ns)
{
	int owners[N_KINDS * SF_PERF_MAX_CPUS];
	size_t n = 0;

	for (size_t i = 0; i < N_KINDS; i++) {
		const struct sf_perf_events *events = kind_of(perf, i);

		memcpy(owners + n, events->owners, events->n_cpus * sizeof(owners[0]));
		n += events->n_cpus;
	}
	sf_perf_wait(owners, n, until_ns);
}

static void look_at_rings(const struct sf_perf *perf, uint64_t until_ns)
{
	uint64_t now_ns;

	while ((now_ns = sf_now_ns()) < until_ns && !is_half_full(perf))
		sf_sleep_until(now_ns + LOOK_NS < until_ns ? now_ns + LOOK_NS : until_ns);
}

/* How many threads there are that may have to be displaced. */
static unsigned n_to_displace(const struct sf_perf *perf)
{
	return perf->kernel_time.n_sought + perf->deep.n_due;
}

static uint64_t need(const struct sf_capture *capture, const struct sf_thread *thread)
{
	const struct sf_perf *perf = (const struct sf_perf *)capture;
	const uint64_t deep = sf_perf_deep_need(perf, thread);

	return deep ? deep : sf_perf_kernel_time_need(perf, thread);
}

static void aim(struct sf_perf *perf, uint64_t until_ns)
{
	if (!n_to_displace(perf) || !sf_ptrace_aim(&perf->base, need, until_ns))
		sf_cpu_move(-1);
}

static void catch_displaced(struct sf_perf *perf)
{
	const uint64_t now_ns = sf_now_ns();
	struct sf_thread *thread = sf_ptrace_displaced(&perf->base, need);

	if (!thread || !sf_perf_budget_has_room(&perf->budget, now_ns))
		return;
	if (sf_perf_deep_need(perf, thread))
		sf_perf_deep_catch(perf, thread, now_ns);
	else
		sf_perf_kernel_time_catch(perf, thread, now_ns);
}

/* Since the last wait. A thread that is to be displaced is caught by a signal, which ends a poll. */
static bool many_end(struct sf_perf *perf, uint64_t now_ns)
{
	const uint64_t n = perf->n_ends - perf->last_wait.n_ends, ns = now_ns - perf->last_wait.began_ns;

	perf->last_wait.n_ends = perf->n_ends;
	perf->last_wait.began_ns = now_ns;
	return n * LOOK_NS > ns && !n_to_displace(perf);
}

/* Whether the stacks of sleeping threads are hardly known yet. */
static bool is_beginning(const struct sf_perf *perf)
{
	return perf->sleeps.on && perf->base.sampled_ns < BEGIN_NS;
}

/* The lower the rate, the longer a batch. Threads are held at its end: jitter keeps holds out of step with what a thread does. */
static uint64_t batch_ns(struct sf_perf *perf)
{
	const uint64_t wanted_ns = perf->events.period_ns * BATCH_SAMPLES / (perf->events.n_cpus ? perf->events.n_cpus : 1);
	const uint64_t most_ns = wanted_ns < BATCH_NS_MAX ? wanted_ns : BATCH_NS_MAX;

	if (perf->base.options.prompt)
		return DRAIN_NS;
	if (n_to_displace(perf))
		return sf_outside_jitter(&perf->base, perf->base.period_ns);
	if (is_beginning(perf))
		return sf_outside_jitter(&perf->base, BATCH_NS_BEGIN);
	return sf_outside_jitter(&perf->base, most_ns > BATCH_NS ? most_ns : BATCH_NS);
}

void sf_perf_wait_for_batch(struct sf_perf *perf, uint64_t now_ns, uint64_t end_ns)
{
	uint64_t until_ns = now_ns + batch_ns(perf);

	if (until_ns > end_ns)
		until_ns = end_ns;
	sf_relay_rest(perf->base.relay, until_ns);
	sf_alarm_set(0); /* of a hold */
	aim(perf, until_ns);
	if (many_end(perf, now_ns))
		look_at_rings(perf, until_ns);
	else
		poll_rings(perf, until_ns);
	catch_displaced(perf);
	if (sf_now_ns() < now_ns + DRAIN_NS)
		sf_sleep_until(now_ns + DRAIN_NS < until_ns ? now_ns + DRAIN_NS : until_ns);
}
