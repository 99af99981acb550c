/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Looks at threads whose sleeps are not recorded: those that are due, and those that are passed over until
 * one of them has run.
 */
#include "capture/perf/perf.h"

#define LONG_ASLEEP 4               /* looks without a change after which a thread may be passed over ... */
#define PASSED_OVER_NS 500000000    /* ... and has a sample for each of these times */

/* False when the thread is gone. */
static bool look(struct sf_capture *capture, struct sf_thread *thread, uint64_t now_ns)
{
	thread->asleep_due_ns = now_ns + sf_outside_jitter(capture, capture->blocked_period_ns +
								    sf_overhead_limit_put_off(&capture->limit));
	if (thread->exited_ns || sf_perf_sleeps_look((struct sf_perf *)capture, thread, now_ns))
		return true;
	sf_watch_extend_sleep(&capture->watch, thread, now_ns);
	if (!sf_thread_measure_and_look(thread, now_ns))
		return false;
	if (!sf_thread_awake(thread))
		sf_ptrace_sample_asleep(capture, thread, now_ns);
	sf_perf_kernel_time_look((struct sf_perf *)capture, thread);
	sf_perf_sleeps_looked((struct sf_perf *)capture, thread);
	return true;
}

/* A thread that has slept for long is looked at again when a thread without a sample has run. */
static bool may_be_passed_over(const struct sf_capture *capture, const struct sf_thread *thread)
{
	return thread->n_same >= LONG_ASLEEP && !sf_thread_awake(thread) && !capture->last_tick &&
	       sf_ptrace_sleep_is_known(capture, thread);
}

static bool is_due(const struct sf_capture *capture, const struct sf_thread *thread, uint64_t now_ns)
{
	return sf_thread_is_sampled(thread) && !thread->only_awake && !thread->hold.is_requested &&
	       (capture->last_tick || now_ns >= thread->asleep_due_ns);
}

/* Looks at the due threads that may not be passed over, or (`passed_over`) at those that may. Returns how many may. */
static size_t look_at(struct sf_capture *capture, bool passed_over, uint64_t now_ns)
{
	size_t n_passed_over = 0;

	for (size_t i = capture->watch.threads.n; i-- > 0;) {
		struct sf_thread *thread = capture->watch.threads.items[i];
		const bool passes = may_be_passed_over(capture, thread);

		if (!is_due(capture, thread, now_ns))
			continue;
		n_passed_over += passes;
		if (passes == passed_over && !look(capture, thread, now_ns))
			sf_watch_scan_soon(&capture->watch); /* that ends it, when its last records are read */
	}
	return n_passed_over;
}

/* No thread has run but those with samples: the threads that are passed over sleep on. */
static void pass_over(struct sf_capture *capture, uint64_t now_ns)
{
	for (size_t i = 0; i < capture->watch.threads.n; i++) {
		struct sf_thread *thread = capture->watch.threads.items[i];

		if (!is_due(capture, thread, now_ns) || !may_be_passed_over(capture, thread))
			continue;
		sf_thread_add_elapsed(thread, now_ns);
		if (thread->account.asleep_ns >= PASSED_OVER_NS)
			sf_watch_extend_sleep(&capture->watch, thread, now_ns);
	}
}

void sf_perf_look_at_due(struct sf_perf *perf, uint64_t now_ns)
{
	struct sf_capture *capture = &perf->base;

	if (!capture->blocked_period_ns || look_at(capture, false, now_ns) == 0 || now_ns < perf->next_others_ns)
		return;
	perf->next_others_ns = now_ns + capture->blocked_period_ns;
	if (!sf_watch_others_ran(&capture->watch)) {
		pass_over(capture, now_ns);
		return;
	}
	look_at(capture, true, now_ns);
	sf_watch_looked_at_all(&capture->watch);
}
