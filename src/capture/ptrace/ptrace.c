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
#include "os/cpu.h"
#include "os/rights.h"

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

static void examine_priority(sf_finding_fn *report, void *arg)
{
	char to_have[160], advice[480];
	bool has_limit;
	const bool may = sf_cpu_may_prefer(&has_limit);

	sf_rights_to_have(SF_RIGHT_BIT(PRIORITY), to_have, sizeof(to_have));
	snprintf(advice, sizeof(advice), "A real-time priority %s. By ptrace, calls that wait for or wake others then have too large a share, by some percent "
		 "on a busy machine. To hold threads at moments of stillframe's own, %s%s.",
		 has_limit ? "would end stillframe by a limit of CPU time (RLIMIT_RTTIME)" : "is refused",
		 has_limit ? "set no such limit" : to_have, has_limit ? "" : ", or set RLIMIT_RTPRIO (ulimit -r) to 1");
	report(arg, may, "stillframe goes before the threads that it holds", advice);
}

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
	examine_priority(report, arg);
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

static uint64_t need(const struct sf_capture *capture, const struct sf_thread *thread)
{
	if (!capture->period_ns || !thread->watched || thread->hold.is_requested)
		return 0;
	return sf_thread_needs_displacement(thread) ? 1 + thread->account.cpu_ns : 0;
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
		sf_hold_let_stop();
		if ((sf_ptrace_all_sleep(capture, sf_now_ns()) || !sf_ptrace_aim(capture, need, until_ns)) && capture->n_awake <= 1)
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

/* False: all watched processes are gone. While all their threads sleep, none of them can start another process. */
static bool scan(struct sf_capture *capture, uint64_t now_ns)
{
	return sf_ptrace_all_sleep(capture, now_ns) || sf_watch_scan(&capture->watch, now_ns);
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
		if (sf_outside_given_up(capture) || !scan(capture, now_ns))
			return;
		capture->last_tick = sf_outside_over(capture, end_ns, now_ns);
		sf_ptrace_tick(capture, now_ns);
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

/* A debugger that has the process is no obstacle: threads that sleep or are stopped can be read. */
bool sf_ptrace_check_dump(int32_t pid, struct sf_error *err)
{
	const enum sf_hold result = sf_hold_allowed(pid);

	return result == SF_HOLD_REQUESTED || result == SF_HOLD_BUSY ||
	       sf_hold_explain(pid, pid, result, err);
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
