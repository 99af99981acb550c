/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A tick of the ptrace engine: the looks at all threads. Threads that have slept for long are passed over, as long as the
 * CPU clocks of their processes show that none of them has run.
 */
#include "capture/ptrace/ptrace.h"

#define LONG_ASLEEP 20              /* looks without a change after which a thread is passed over ... */
#define PASSED_OVER_NS 50000000     /* ... unless a thread may have run that was passed over: then so often */
#define UNNOTICED_NS 500000         /* for which these may have run in all; if it is more, all are looked at */
#define CLOCK_NS 2750000            /* the clocks of processes are read so often: the kernel adds to them at its ticks, of 4 ms mostly */
#define EXTEND_NS 500000000         /* the time of sleeps that go on is added so often, without a look */

/* At the end all are, so that the samples stand for all the time that there was. */
static bool due_asleep(const struct sf_capture *capture, const struct sf_thread *thread, uint64_t now_ns)
{
	return capture->blocked_period_ns && (capture->last_tick || now_ns >= thread->asleep_due_ns);
}

static void put_off(struct sf_capture *capture, struct sf_thread *thread, uint64_t now_ns)
{
	thread->asleep_due_ns = now_ns + sf_outside_jitter(capture, capture->blocked_period_ns +
								    sf_overhead_limit_put_off(&capture->limit));
}

/* It has slept for long, and sleeps on unless some thread has run that was not looked at. */
static bool may_be_passed_over(const struct sf_capture *capture, const struct sf_thread *thread, uint64_t now_ns)
{
	return thread->n_same >= LONG_ASLEEP && !capture->last_tick &&
	       (!due_asleep(capture, thread, now_ns) || sf_ptrace_sleep_is_known(capture, thread));
}

/* Whether it is held only when it is displaced (displaced.h). Not if that was never the case for long. */
static bool waits_for_displacement(const struct sf_capture *capture, const struct sf_thread *thread)
{
	return sf_thread_needs_displacement(thread) && !capture->displacement.is_missing &&
	       !sf_thread_is_overdue(thread, capture->period_ns);
}

/* False when the thread is gone. */
static bool tick_thread(struct sf_capture *capture, struct sf_thread *thread, uint64_t now_ns)
{
	if (thread->hold.is_requested && capture->last_tick)
		sf_thread_add_elapsed(thread, now_ns); /* what it gives when it stands is its last */
	if (thread->hold.is_requested || !thread->watched)
		return true;
	capture->n_looked++;
	sf_thread_count_look(thread, now_ns);
	if (!due_asleep(capture, thread, now_ns) && sf_thread_sleeps_again(thread, now_ns))
		return true;
	if (!sf_thread_look(thread, now_ns))
		return false;
	sf_thread_measure_use(thread);
	if (sf_thread_awake(thread)) {
		capture->n_awake++;
		if (capture->period_ns && !waits_for_displacement(capture, thread))
			sf_ptrace_hold(capture, thread, now_ns);
	} else if (due_asleep(capture, thread, now_ns)) {
		sf_ptrace_sample_asleep(capture, thread, now_ns);
		put_off(capture, thread, now_ns);
	}
	return true;
}

/* Tick of the thread at this index. One that is gone ends at the scan, with all others that are gone. */
static void tick_at(struct sf_capture *capture, size_t i, uint64_t now_ns)
{
	struct sf_thread *thread = capture->watch.threads.items[i];

	if (!tick_thread(capture, thread, now_ns)) {
		thread->is_gone = true;
		sf_watch_scan_soon(&capture->watch);
	}
	while (capture->n_requested && sf_ptrace_answer(capture, false))
		;
}

/* Threads that ended while they were asked for are no longer waited for: so the count is made anew. */
static int count_asked(const struct sf_capture *capture)
{
	int n = 0;

	for (size_t i = 0; i < capture->watch.threads.n; i++)
		n += capture->watch.threads.items[i]->hold.is_requested;
	return n;
}

/* Threads that may not be passed over. How many others there are. */
static size_t tick_threads(struct sf_capture *capture, uint64_t now_ns)
{
	size_t n_passed_over = 0;

	for (size_t i = capture->watch.threads.n; i-- > 0;) {
		if (may_be_passed_over(capture, capture->watch.threads.items[i], now_ns))
			n_passed_over++;
		else
			tick_at(capture, i, now_ns);
	}
	return n_passed_over;
}

/* Those that are passed over sleep on. */
static void pass_over(struct sf_capture *capture, uint64_t now_ns)
{
	for (size_t i = 0; i < capture->watch.threads.n; i++) {
		struct sf_thread *thread = capture->watch.threads.items[i];

		if (!may_be_passed_over(capture, thread, now_ns))
			continue;
		sf_thread_add_elapsed(thread, now_ns);
		sf_on_cpu_counted(&thread->on_cpu, thread->run.cpu_ns, now_ns); /* it has not changed */
		sf_on_cpu_slept(&thread->on_cpu);
		if (due_asleep(capture, thread, now_ns))
			put_off(capture, thread, now_ns);
		if (thread->account.asleep_ns >= EXTEND_NS)
			sf_watch_extend_sleep(&capture->watch, thread, now_ns);
	}
}

/* Some of them have run, for so long in all: looks at those that are due, or at all. */
static void look_at_passed_over(struct sf_capture *capture, uint64_t others_ns, uint64_t now_ns)
{
	const bool all = others_ns > UNNOTICED_NS || now_ns - capture->rest.all_ns >= EXTEND_NS;

	for (size_t i = capture->watch.threads.n; i-- > 0;) {
		struct sf_thread *thread = capture->watch.threads.items[i];

		if (!may_be_passed_over(capture, thread, now_ns) ||
		    (!all && !due_asleep(capture, thread, now_ns) && now_ns - thread->seen_ns < PASSED_OVER_NS))
			continue;
		sf_watch_extend_sleep(&capture->watch, thread, now_ns); /* before the look, which may find another sleep */
		tick_at(capture, i, now_ns);
	}
	if (all) {
		sf_watch_looked_at_all(&capture->watch);
		capture->rest.all_ns = now_ns;
	}
}

bool sf_ptrace_all_sleep(const struct sf_capture *capture, uint64_t now_ns)
{
	return capture->rest.all_asleep && !capture->last_tick && now_ns - capture->rest.tick_ns < PASSED_OVER_NS;
}

/* No thread has run since the last tick that looked at threads: this tick may be left out. */
static bool all_sleep_on(struct sf_capture *capture, uint64_t now_ns)
{
	if (!sf_ptrace_all_sleep(capture, now_ns) || capture->rest.last_serial != capture->watch.last_serial)
		return false;
	if (now_ns - capture->rest.asked_ns < CLOCK_NS)
		return true;
	capture->rest.asked_ns = now_ns;
	return sf_watch_cpu_ns(&capture->watch) == capture->watch.cpu_ns;
}

/* Threads that this tick has not looked at: the clocks of their processes say whether they have run. */
static void see_passed_over(struct sf_capture *capture, uint64_t now_ns)
{
	const uint64_t others_ns = sf_watch_others_ran(&capture->watch);

	if (others_ns)
		look_at_passed_over(capture, others_ns, now_ns);
	else
		pass_over(capture, now_ns);
	capture->rest.all_asleep = !others_ns && !capture->n_looked && !capture->n_requested;
	capture->rest.tick_ns = now_ns;
	capture->rest.last_serial = capture->watch.last_serial;
}

void sf_ptrace_tick(struct sf_capture *capture, uint64_t now_ns)
{
	capture->n_awake_before = capture->n_awake;
	capture->n_awake = 0;
	capture->n_looked = 0;
	/*
	 * Also when nobody is asked for: a thread that was killed while it stood cannot be let go, it
	 * ends, and its process can neither exec nor be waited for until we have taken note.
	 */
	while (sf_ptrace_answer(capture, false))
		;
	if (all_sleep_on(capture, now_ns))
		return;
	capture->rest.all_asleep = false;
	capture->n_requested = count_asked(capture);
	if (tick_threads(capture, now_ns))
		see_passed_over(capture, now_ns);
}
