/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The perf engine: the kernel samples running threads by perf events, with their registers and a copy of their stack.
 * No thread is held, stopped or woken for that. A thread is held only if the kernel's copies of its stack have turned
 * out to be too little (sf_thread_needs_longer_copies). Threads that sleep are read where they sleep, with the
 * registers that BPF shows where it is allowed, else by the means of the ptrace engine.
 *
 * Samples are taken out of the rings in batches (batch.c). After each batch the processes and threads are looked for, and the
 * sleeping threads that are due are sampled.
 */
#include "capture/perf/perf.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "capture/bpf/source.h"
#include "capture/perf/allowed.h"
#include "os/cgroup.h"
#include "os/clock.h"
#include "os/process.h"

#define STOPS_NS 20000000           /* that threads whose holds are requested are waited for, at the most */
#define ENDED_NS 1000000000         /* after the end of a process, until it is forgotten */
#define SCAN_NS 200000000           /* between two looks at all processes: the records say what has changed */
#define UNSAMPLED_PERIODS 8         /* of CPU time of a thread, between two samples: by chance more come once in 3,000 times, ... */
#define UNSAMPLED_NS 50000000       /* ... and by a clock that is late or throttled */
#define MAX_RESCANS 3               /* one for each generation of processes that have ended meanwhile */

static struct sf_perf *perf_of(struct sf_capture *capture)
{
	return (struct sf_perf *)capture;
}

static bool check_events(int32_t pid, struct sf_error *err)
{
	bool kernel;

	return pid == SF_ALL_PROCESSES ? sf_perf_check_all(err) : sf_perf_events_allowed(pid, &kernel, err);
}

/* CAP_PERFMON alone gives events of every process, and no right to read what they run. */
static bool check(int32_t pid, struct sf_error *err)
{
	return check_events(pid, err) && (pid <= 0 || sf_process_check_reading(pid, err));
}

void sf_perf_close(struct sf_capture *capture)
{
	struct sf_perf *perf = perf_of(capture);

	if (!capture)
		return;
	sf_perf_events_close(&perf->events);
	sf_perf_sleeps_close(&perf->sleeps);
	sf_perf_signals_close(&perf->signals);
	sf_vec_deinit(&perf->due);
	sf_perf_newcomers_deinit(&perf->newcomers);
	sf_bpf_source_close(capture->saved);
	sf_outside_close(capture);
	free(perf);
}

static bool open_events(struct sf_perf *perf, struct sf_error *err)
{
	struct sf_ids ids = { 0 };
	const int32_t first = perf->base.options.all ? SF_PERF_ALL_THREADS : perf->base.options.pid;
	bool fine = sf_perf_events_allowed(first, &perf->events.kernel, err);

	perf->events.all = perf->base.options.all;
	perf->events.cgroup = perf->base.watch.cgroup;
	perf->events.children = perf->base.options.children || (perf->events.all && !sf_watch_is_sampled(&perf->base.watch));
	perf->events.enabled = perf->base.options.child != 0;
	if (fine && !perf->events.kernel)
		sf_perf_fail_kernel(&perf->no_kernel);
	fine = fine && sf_perf_counting_open(perf, err) && sf_perf_events_open(&perf->events, perf->base.period_ns, err);
	if (fine)
		sf_perf_sleeps_open(perf);
	if (fine && (perf->base.period_ns || perf->sleeps.on))
		fine = sf_perf_list_processes(perf, &ids) || sf_fail_memory(err);
	if (fine && perf->base.period_ns)
		fine = sf_perf_events_attach(&perf->events, ids.ids.items, ids.ids.n, err);
	if (fine)
		sf_perf_sleeps_attach(perf, ids.ids.items, ids.ids.n);
	if (fine && perf->base.options.all && perf->events.kernel)
		sf_perf_signals_open(&perf->signals, &perf->events);
	sf_vec_deinit(&ids.ids);
	return fine;
}

/*
 * The events are opened before a child runs its program: so every thread and process that it starts has them. Those of
 * a process that runs already count from run() on: what was sampled while its tables are made would find no room.
 */
static bool open_capture(const struct sf_capture_options *options, struct sf_capture **ret, struct sf_error *err)
{
	struct sf_perf *perf = calloc(1, sizeof(*perf));
	struct sf_capture *capture = perf ? &perf->base : NULL;

	if (!perf)
		return sf_fail_memory(err);
	if (!sf_outside_open(capture, options, err) || !open_events(perf, err)) {
		sf_perf_close(capture);
		return false;
	}
	perf->may_hold = !options->all && !perf->counting.on;
	perf->own_pid = (int32_t)getpid();
	for (size_t i = 0; perf->may_hold && i < sf_capture_n_pids(options); i++)
		perf->may_hold &= sf_hold_allowed(sf_capture_pid(options, i)) == SF_HOLD_REQUESTED;
	capture->options.no_interrupt |= !perf->may_hold;
	capture->records_sleeps = perf->sleeps.on;
	capture->counts_waits = true;
	capture->watch.keeps_ended = true;
	if (capture->watch.cgroup)
		capture->watch.most_unsampled_ns = UNSAMPLED_NS + UNSAMPLED_PERIODS * capture->period_ns;
	if (capture->blocked_period_ns)
		capture->saved = sf_bpf_source_open(&perf->no_saved);
	*ret = capture;
	return true;
}

/*
 * A thread that waits for a CPU stops when it gets one, which is long after the request. Nothing else is done meanwhile:
 * the thread would stay stopped for that time.
 */
static void wait_for_stops(struct sf_capture *capture)
{
	sf_alarm_set(sf_now_ns() + STOPS_NS);
	while (capture->n_requested && sf_ptrace_answer(capture, true))
		;
	sf_alarm_set(0);
}

/* Serves the requests of the ptrace engine's parts: for a child that has ended, for threads that stop late. */
static void answer_all(struct sf_capture *capture)
{
	while (sf_ptrace_answer(capture, false))
		;
}

/* Of processes that ended without a sample. A sample of one may be in a ring for a while. */
static void forget_ended(struct sf_perf *perf, uint64_t now_ns)
{
	int32_t pid;

	while ((pid = sf_perf_newcomers_next_ended(&perf->newcomers, now_ns - ENDED_NS)) != 0) {
		if (!sf_watch_has_process(&perf->base.watch, pid))
			sf_relay_process_end(perf->base.relay, pid);
	}
}

static bool is_to_scan(const struct sf_perf *perf, uint64_t now_ns)
{
	return !perf->base.watch.next_scan_ns || now_ns >= perf->next_scan_ns || perf->base.last_tick;
}

/*
 * After the end of some, others live, and are looked at when their time comes. At the end of a process whose children's
 * CPU time is compared with what was seen of them, all children that have ended are to be known, and at the end of the
 * recording all that has ended.
 */
static bool some_go_on(const struct sf_perf *perf)
{
	const struct sf_watch *watch = &perf->base.watch;

	return !perf->base.last_tick && !watch->lost_firsts && (watch->processes.n > 0 || perf->base.options.all);
}

/*
 * A thread whose end is recorded is there for a while yet: the kernel writes the record before the thread is a zombie, and some
 * versions do that before its memory goes (kernel/exit.c: do_exit()). So each batch is followed by a scan then, if the pause after
 * the last one is over (watch.c: SCAN_SHARE).
 */
static bool has_just_ended(const struct sf_perf *perf, uint64_t now_ns)
{
	return !perf->base.options.all && now_ns < perf->end_ns + SCAN_NS;
}

/*
 * When a record says that something has ended, and now and then. The last records of a process that is found to have
 * ended may be in the rings: of its samples, and of others that it has started. It is ended when they are read. False:
 * all are gone.
 */
static bool scan(struct sf_perf *perf, uint64_t now_ns)
{
	struct sf_watch *watch = &perf->base.watch;
	bool more;

	if (!is_to_scan(perf, now_ns))
		return watch->processes.n > 0 || perf->base.options.all;
	perf->next_scan_ns = has_just_ended(perf, now_ns) ? now_ns : now_ns + SCAN_NS;
	forget_ended(perf, now_ns);
	more = sf_watch_scan(watch, now_ns);
	for (int i = 0; watch->has_kept && i < MAX_RESCANS; i++) {
		sf_perf_batch(perf, sf_now_ns());
		sf_watch_end_kept(watch, now_ns);
		if (some_go_on(perf))
			return true;
		sf_watch_scan_soon(watch);
		more = sf_watch_scan(watch, now_ns);
	}
	return more;
}

/* After a batch: what all has cost decides how many samples of the next one are walked. */
static void set_budget(struct sf_perf *perf, uint64_t now_ns)
{
	struct sf_overhead_limit *limit = &perf->base.limit;
	const struct sf_overhead_limit_clocks clocks = sf_outside_look_at_costs(&perf->base);
	const uint64_t allowed_ns = sf_overhead_limit_allows(limit, clocks.now_ns - limit->before_ns);
	const uint64_t due_ns = sf_overhead_limit_next(limit, &clocks, (unsigned)perf->due.n + perf->kernel_time.n_sought + perf->deep.n_due, now_ns);

	sf_perf_budget_set(&perf->budget, due_ns > clocks.now_ns ? due_ns - clocks.now_ns : 0, allowed_ns,
			   sf_relay_usual_walk_ns(perf->base.relay));
}

/* The names of the processes that run already: one may end between its first sample and the first look at it. */
static void note_all(struct sf_perf *perf)
{
	struct sf_ids ids = { 0 };
	char name[SF_TASK_NAME];

	if (perf->events.cgroup)
		sf_cgroup_processes(perf->events.cgroup, &ids);
	else
		sf_process_all(&ids);
	for (size_t i = 0; i < ids.ids.n; i++) {
		if (sf_task_name(ids.ids.items[i], ids.ids.items[i], name))
			sf_perf_newcomers_fork(&perf->newcomers, ids.ids.items[i], 0, name, 0);
	}
	sf_vec_deinit(&ids.ids);
}

static void sample_until_over(struct sf_capture *capture)
{
	struct sf_perf *perf = perf_of(capture);
	const uint64_t start_ns = sf_outside_begin_limit(capture);
	const uint64_t end_ns = sf_outside_end(capture, start_ns);

	sf_perf_budget_begin(&perf->budget);
	sf_perf_counting_begin(perf, start_ns);
	sf_perf_kernel_time_begin(perf);
	if (sf_watch_is_sampled(&capture->watch))
		note_all(perf);
	else if (!capture->options.child) /* what runs already is known before there are records: all others are new */
		scan(perf, start_ns);
	if (!perf->events.enabled)
		sf_perf_events_enable(&perf->events);
	sf_perf_sleeps_enable(perf);
	sf_perf_events_enable(&perf->signals.events);
	for (uint64_t now_ns = start_ns;; now_ns = sf_now_ns()) {
		capture->sampled_ns = now_ns - start_ns;
		capture->last_tick = sf_outside_over(capture, end_ns, now_ns);
		if (capture->last_tick && perf->counting.on)
			sf_perf_events_disable(&perf->events);
		sf_perf_batch(perf, now_ns);
		answer_all(capture);
		if (sf_outside_given_up(capture) || !scan(perf, now_ns))
			return;
		sf_perf_look_at_due(perf, now_ns);
		sf_perf_kernel_time_seek(perf, now_ns);
		if (capture->n_requested)
			wait_for_stops(capture);
		if (capture->last_tick)
			return;
		sf_perf_renew(perf, now_ns);
		set_budget(perf, now_ns);
		sf_perf_sleeps_limit(perf, now_ns);
		sf_perf_wait_for_batch(perf, now_ns, end_ns);
	}
}

static void sample_all(struct sf_capture *capture)
{
	struct sf_perf *perf = perf_of(capture);

	sample_until_over(capture);
	if (!perf->counting.on)
		return;
	sf_perf_events_disable(&perf->events);
	sf_perf_batch(perf, sf_now_ns()); /* of processes that began and ended since the last one */
	sf_perf_counting_end(perf);
}

bool sf_perf_run(struct sf_capture *capture, const struct sf_sink *sink, struct sf_error *err)
{
	const struct sf_perf *perf = perf_of(capture);

	return sf_perf_counting_report(perf, sink, false, err) && sf_outside_run(capture, sink, sample_all, err) &&
	       sf_perf_counting_report(perf, sink, true, err) && sf_perf_notes(perf, sink, err);
}

/* Before a command is started for nothing. */
static bool check_settings(const struct sf_setting *settings, struct sf_error *err)
{
	const char *event = sf_setting_event(settings);
	struct sf_perf_named_event named;

	if (event && sf_setting(settings, "offcpu-min"))
		return sf_fail(err, SF_E_INPUT, "either --event or --offcpu-min, not both: sleeps are not sampled beside an event");
	return !event || sf_perf_event_parse(event, &named, err);
}

const struct sf_option sf_perf_options[] = {
	SF_OUTSIDE_OPTION_MAX_COST,
	{ .name = "offcpu-min", .kind = SF_OPTION_TIME, .argument = "TIME",
	  .help = "engines perf and bpf: each sleep of this length has a sample of its own, where the kernel may be asked (default 1ms)" },
	{ .name = SF_SETTING_EVENT, .kind = SF_OPTION_STRING, .argument = "EVENT",
	  .help = "engines perf and bpf: sample an event in place of time: page-faults, context-switches, cycles and others that perf has, or a tracepoint "
		  "SYSTEM:NAME; engine signal: " SF_RUNTIME_EVENT_NAMES "; NAME/N: each N-th (default: each, or fewer than --rate)" },
	{ .name = NULL },
};

const struct sf_engine sf_engine_perf = {
	.name = "perf",
	.summary = "perf events sample running threads; only those whose stacks they cannot copy are held",
	.from = "outside",
	.yields = SF_YIELDS_STILLS,
	.reach = SF_REACHES_ALL,
	.options = sf_perf_options,
	.check_settings = check_settings,
	.examine = sf_perf_examine,
	.check = check,
	.is_limited = sf_perf_is_limited,
	.try_child = check_events, /* the child is ours, but it waits as this user did: as any other process of the user */
	.open = open_capture,
	.run = sf_perf_run,
	.stop = sf_outside_stop,
	.child_status = sf_outside_child_status,
	.close = sf_perf_close,
};
