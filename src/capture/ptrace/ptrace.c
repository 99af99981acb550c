/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The ptrace engine: threads are held by the kernel, on request, for the time in which their
 * registers and stack are copied (os/hold.h); the copies are walked by another thread (relay.h).
 *
 * At each tick every thread is looked at. For a thread that is awake the engine requests a hold, and copies the stack
 * when the thread stands. If the thread does not stand at once, the hold stays pending and the sample comes late. A thread
 * that often sleeps or is often in the kernel is held when it is displaced (displaced.h), and not at a tick.
 *
 * A thread that sleeps is due less often, and is read without a hold. As long as it sleeps on, its last sample stands for
 * it. A sleeping thread is interrupted only if its walk needs registers that /proc does not show, or if it is stopped amid
 * its own code: once for each sleep, and never in a system call that would not continue afterwards.
 */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "capture/ptrace/ptrace.h"
#include "os/clock.h"
#include "os/rights.h"

#define LONG_ASLEEP 20              /* ticks without a change after which a thread is looked at less often ... */
#define PASSED_OVER_NS 50000000     /* ... as long as none of these runs, and at least so often */
#define UNNOTICED_NS 500000         /* what a run of these may take in all */
#define NOTABLE_S 0.5               /* sampled for less, there is no note of how often that was */

static bool check(int32_t pid, struct sf_error *err)
{
	enum sf_hold result = pid ? sf_hold_allowed(pid) : SF_HOLD_REQUESTED;

	if (!pid && sf_hold_is_filtered())
		return sf_fail(err, SF_E_DENIED, "a system-call filter (seccomp; a container's, perhaps) refuses ptrace");
	return result == SF_HOLD_REQUESTED || sf_hold_explain(pid, pid, result, err);
}

/* Advice for users other than root, by Yama's scope. */
static const char *const scope_advice[] = {
	"",
	("Only commands that stillframe starts: stillframe record -- COMMAND; or have CAP_SYS_PTRACE (stillframe doctor --setcap); or sysctl "
	 "kernel.yama.ptrace_scope=0."),
	"Have CAP_SYS_PTRACE (stillframe doctor --setcap).",
	"Nothing gives it until the machine is started again with another value.",
};

static void examine(sf_finding_fn *report, void *arg)
{
	const int scope = sf_hold_scope(), most = (int)(sizeof(scope_advice) / sizeof(*scope_advice)) - 1;
	const int at = scope < 0 ? 0 : scope > most ? most : scope;
	char text[80];

	snprintf(text, sizeof(text), "kernel.yama.ptrace_scope is %d", scope);
	report(arg, at == 0 || (at < most && !sf_rights_missing(SF_RIGHT_BIT(TRACE))), text, scope_advice[at]);
	report(arg, sf_task_shows_turns(), "/proc shows when threads got their CPUs",
	       "se.exec_start of /proc/PID/task/TID/sched cannot be read, for which the kernel needs CONFIG_SCHED_DEBUG, or Linux 6.15. Threads that "
	       "are held are then held where the scheduler lets stillframe run: shares of calls that wait for or wake others may be wrong by some "
	       "percent.");
}

struct trial {
	int32_t pid;
	enum sf_hold result;
};

static void ask_once(void *arg)
{
	struct trial *trial = arg;

	trial->result = sf_hold_request(trial->pid);
}

/* By a try: a seccomp filter refuses the call, and nothing in /proc shows that. The end of the trying thread lets it go. */
static bool try_child(int32_t pid, struct sf_error *err)
{
	struct trial trial = { .pid = pid, .result = SF_HOLD_DENIED };

	if (!sf_hold_run(ask_once, &trial, err))
		return false;
	return trial.result == SF_HOLD_REQUESTED || sf_hold_explain(pid, pid, trial.result, err);
}

static bool open_capture(const struct sf_capture_options *options, struct sf_capture **ret,
			 struct sf_error *err)
{
	struct sf_capture *capture = calloc(1, sizeof(*capture));

	if (!capture)
		return sf_fail_memory(err);
	if (!sf_outside_open(capture, options, err)) {
		sf_outside_close(capture);
		free(capture);
		return false;
	}
	*ret = capture;
	return true;
}

static void close_capture(struct sf_capture *capture)
{
	if (!capture)
		return;
	sf_outside_close(capture);
	free(capture);
}

/* At the end all are, so that the samples stand for all the time that there was. */
static bool due_asleep(const struct sf_capture *capture, const struct sf_thread *thread, uint64_t now_ns)
{
	return capture->blocked_period_ns && (capture->last_tick || now_ns >= thread->asleep_due_ns);
}

/* Threads that have slept for long are looked at as often as they are sampled, or when somebody has run. */
static bool may_be_passed_over(const struct sf_capture *capture, const struct sf_thread *thread,
			       uint64_t now_ns)
{
	return thread->n_same >= LONG_ASLEEP && now_ns - thread->seen_ns < PASSED_OVER_NS &&
	       !due_asleep(capture, thread, now_ns);
}

/* Whether it is held only when it is displaced (displaced.h). Not if that was never the case for long. */
static bool waits_for_displacement(const struct sf_capture *capture, const struct sf_thread *thread)
{
	return sf_thread_needs_displacement(thread) && !capture->displacement.is_missing &&
	       !sf_displacement_is_overdue(thread, capture->period_ns);
}

static uint64_t need(const struct sf_capture *capture, const struct sf_thread *thread)
{
	if (!capture->period_ns || !thread->watched || thread->hold.is_requested)
		return 0;
	return sf_thread_needs_displacement(thread) ? 1 + thread->account.cpu_ns : 0;
}

/* False when the thread is gone. */
static bool tick_thread(struct sf_capture *capture, struct sf_thread *thread, uint64_t now_ns)
{
	if (thread->hold.is_requested && capture->last_tick)
		sf_thread_add_elapsed(thread, now_ns); /* what it gives when it stands is its last */
	if (thread->hold.is_requested || !thread->watched)
		return true;
	capture->n_looked++;
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
		thread->asleep_due_ns = now_ns + sf_outside_jitter(capture, capture->blocked_period_ns +
									    sf_overhead_limit_put_off(&capture->limit));
	}
	return true;
}

/* Threads that ended while they were asked for are no longer waited for: so the count is made anew. */
static int count_asked(const struct sf_capture *capture)
{
	int n = 0;

	for (size_t i = 0; i < capture->watch.threads.n; i++)
		n += capture->watch.threads.items[i]->hold.is_requested;
	return n;
}

/* All that may not be passed over, or all that were. How many are. */
static size_t tick_threads(struct sf_capture *capture, bool passed_over, uint64_t now_ns)
{
	size_t n_passed_over = 0;

	for (size_t i = capture->watch.threads.n; i-- > 0;) {
		struct sf_thread *thread = capture->watch.threads.items[i];
		const bool passes = may_be_passed_over(capture, thread, now_ns);

		n_passed_over += passes;
		if (passes != passed_over)
			continue;
		if (!tick_thread(capture, thread, now_ns))
			sf_watch_end_thread(&capture->watch, i, now_ns);
		while (capture->n_requested && sf_ptrace_answer(capture, false))
			;
	}
	return n_passed_over;
}

static void tick(struct sf_capture *capture, uint64_t now_ns)
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
	capture->n_requested = count_asked(capture);
	if (tick_threads(capture, false, now_ns) == 0)
		return;
	if (sf_watch_others_ran(&capture->watch, UNNOTICED_NS)) {
		tick_threads(capture, true, now_ns);
		sf_watch_looked_at_all(&capture->watch);
	}
}

/* After the rest: a sample of the thread that was displaced. */
static void catch_displaced(struct sf_capture *capture)
{
	const uint64_t now_ns = sf_now_ns();
	struct sf_thread *thread = sf_ptrace_displaced(capture, need);

	if (thread && sf_thread_look(thread, now_ns))
		sf_ptrace_sample_displaced(capture, thread, now_ns);
}

/* Until the next tick, or as long as threads that were asked for answer late. */
static void rest(struct sf_capture *capture, uint64_t until_ns)
{
	sf_relay_rest(capture->relay, until_ns);
	if (!capture->n_requested) {
		sf_alarm_set(0);
		if (!sf_ptrace_aim(capture, need, until_ns) && capture->n_awake <= 1)
			sf_cpu_move(-1);
		sf_sleep_until(until_ns);
		catch_displaced(capture);
		return;
	}
	sf_alarm_set(until_ns);
	while (capture->n_requested && sf_now_ns() < until_ns && sf_ptrace_answer(capture, true))
		;
	if (sf_now_ns() < until_ns)
		sf_sleep_until(until_ns);
}

/* A period after the one that was wanted for wanted_ns, and not at once after one that came late, for now_ns. */
static uint64_t next_tick(struct sf_capture *capture, uint64_t wanted_ns, uint64_t now_ns, uint64_t period_ns)
{
	const uint64_t least_ns = now_ns - period_ns / 2;

	return (wanted_ns > least_ns ? wanted_ns : least_ns) + sf_outside_jitter(capture, period_ns);
}

static void sample_until_over(struct sf_capture *capture)
{
	uint64_t period_ns = capture->period_ns ? capture->period_ns : capture->blocked_period_ns;
	const uint64_t start_ns = sf_outside_begin_limit(capture);
	const uint64_t end_ns = sf_outside_end(capture, start_ns);
	struct sf_overhead_limit_clocks clocks;
	uint64_t next_ns = start_ns;

	sf_cpu_prefer();
	for (uint64_t now_ns = start_ns;; now_ns = sf_now_ns()) {
		capture->sampled_ns = now_ns - start_ns;
		if (sf_outside_given_up(capture) || !sf_watch_scan(&capture->watch, now_ns))
			return;
		capture->last_tick = sf_outside_over(capture, end_ns, now_ns);
		tick(capture, now_ns);
		if (capture->last_tick)
			return;
		next_ns = next_tick(capture, next_ns, now_ns, period_ns);
		clocks = sf_outside_look_at_costs(capture);
		if (next_ns < clocks.now_ns)
			next_ns = clocks.now_ns; /* late: the ticks that were missed are in the weights */
		next_ns = sf_overhead_limit_next(&capture->limit, &clocks, capture->n_looked, next_ns);
		rest(capture, next_ns < end_ns ? next_ns : end_ns);
	}
}

/*
 * Told where the limit put ticks off for a tenth of the time: on a busy machine these may be few, each for long. Or where
 * half of all are missing for want of a CPU.
 */
static bool note_pace(const struct sf_capture *capture, const struct sf_sink *sink,
		      struct sf_error *err)
{
	const struct sf_overhead_limit *limit = &capture->limit;
	const double seconds = (double)capture->sampled_ns / 1e9, ticks = (double)limit->n_ticks / seconds;
	char text[300], why[160];

	if (!sink->note || !capture->period_ns || !capture->held_any || seconds < NOTABLE_S)
		return true;
	if (limit->late_ns > capture->sampled_ns / 10)
		snprintf(why, sizeof(why), "more often would take over %u %% of this machine's CPUs (each "
			 "sample stands for more time; --max-cost allows more, --engine signal costs less)",
			 limit->late_share);
	else if (ticks * (double)capture->period_ns < 0.5e9)
		snprintf(why, sizeof(why), "the CPUs were too busy for more (each sample stands for more time)");
	else
		return true;
	snprintf(text, sizeof(text), "busy threads were looked at %.0f times a second, not %.0f: %s", ticks,
		 1e9 / (double)capture->period_ns, why);
	return sink->note(sink->arg, capture->options.pid, text, err);
}

static bool run(struct sf_capture *capture, const struct sf_sink *sink, struct sf_error *err)
{
	bool fine = sf_outside_run(capture, sink, sample_until_over, err);

	fine = fine && note_pace(capture, sink, err);
	if (fine && !capture->held_any && capture->refused_tid && capture->refusal != SF_HOLD_GONE)
		return sf_hold_explain(capture->refused_pid, capture->refused_tid, capture->refusal, err);
	return fine;
}

const struct sf_engine sf_engine_ptrace = {
	.name = "ptrace",
	.summary = "holds one thread after another for the time that a copy of its stack takes",
	.from = "outside",
	.yields = SF_YIELDS_STILLS,
	.reach = SF_REACHES_SEVERAL,
	.options = sf_outside_options,
	.examine = examine,
	.check = check,
	.try_child = try_child,
	.open = open_capture,
	.run = run,
	.stop = sf_outside_stop,
	.child_status = sf_outside_child_status,
	.close = close_capture,
	.check_dump = sf_ptrace_check_dump,
	.dump = sf_ptrace_dump,
};
