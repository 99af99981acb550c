/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The signal engine: the agent (src/agent) samples its own process, and this end passes on what it puts into its
 * outbox. An agent calls us, because we launched its program, or we call it, because it listens. After
 * an exec, and in a forked child, another one calls.
 *
 * No process is touched from here; if stillframe dies, agents see the end of their channel and stop.
 */
#include "capture/signal/signal_engine.h"

#include <stdlib.h>
#include <unistd.h>

#include "os/clock.h"
#include "os/cpu_clocks.h"
#include "os/process.h"
#include "runtime/events.h"
#include "runtime/runtimes.h"

#define STOP_NS UINT64_C(5000000000)    /* for all to be done */
#define QUIET_NS UINT64_C(900000000)    /* ... after Ctrl-C, while none of them writes anything */
#define LAST_BYTES (UINT64_C(4) << 20)  /* that each may write then, besides a full ring; honest ones write some hundred kB */

/* --- check, open, close --- */

static int call(int32_t pid, struct sf_error *err)
{
	int channel = sf_channel_call(pid, err);

	if (channel < 0)
		sf_fail_hint(err, "Start the program with STILLFRAME=listen and LD_PRELOAD=.../"
				  "libstillframe-agent.so, or as stillframe record -e signal -- COMMAND.");
	return channel;
}

static bool check(int32_t pid, struct sf_error *err)
{
	const struct sf_runtime_driver *loader;
	char library[4096];
	int channel;

	if (!pid)
		return sf_signal_library(library, sizeof(library), err);
	channel = call(pid, err);
	if (channel < 0) {
		loader = sf_runtimes_loader(pid);
		return loader && sf_signal_library(library, sizeof(library), err) &&
		       loader->is_loadable(pid, err);
	}
	close(channel);
	return true;
}

static bool has_runtime(int32_t pid, const char *word, struct sf_error *err)
{
	const struct sf_runtime_driver *driver = sf_runtimes_inside(word);
	char name[64];

	if (driver && driver->is_in(pid))
		return true;
	sf_process_name(pid, name, sizeof(name));
	sf_fail(err, SF_E_UNSUPPORTED, "pid %d (%s) cannot be recorded by --engine %s: it has not loaded %s", pid, name, word,
		driver ? driver->inside_text : "its runtime");
	return sf_fail_hint(err, "Leave --engine out: another engine records this process.");
}

/* The clocks that can expire in a process here. */
static void examine(sf_finding_fn *report, void *arg)
{
	struct sf_error perf = { 0 }, users = { 0 }, timer = { 0 };
	const bool fine = sf_perf_clock_works(&perf);

	report(arg, fine, "perf events ring for CPU time (--cpu-clock perf)", perf.text);
	if (fine && geteuid() == 0)
		report(arg, sf_perf_clock_works_unprivileged(&users), "they do so for other users, too",
		       users.text);
	report(arg, sf_thread_timer_works(&timer), "timers ring for CPU time (--cpu-clock timer)",
	       timer.text);
}

static void close_listener(struct sf_capture *capture)
{
	if (capture->listener < 0)
		return;
	close(capture->listener);
	sf_channel_remove(capture->path);
	capture->listener = -1;
}

static void close_capture(struct sf_capture *capture)
{
	if (!capture)
		return;
	for (size_t i = 0; i < capture->agents.n; i++)
		sf_signal_agent_free(capture->agents.items[i]);
	sf_vec_deinit(&capture->agents);
	sf_vec_deinit(&capture->polled);
	sf_vec_deinit(&capture->away);
	close_listener(capture);
	free(capture->variable);
	for (size_t i = 0; i < SF_CHILD_VARIABLES; i++)
		free(capture->loads[i]);
	free(capture->record);
	free(capture);
}

static bool check_hooks(const struct sf_capture_options *options, struct sf_error *err)
{
	const bool by_hooks = sf_signal_walks_by_hooks(options->settings);

	if (!by_hooks && sf_setting(options->settings, SF_HOOKS_ONLY))
		return sf_fail(err, SF_E_INPUT, "--" SF_HOOKS_ONLY " names methods that get hooks, and no option asks for a walk by hooks");
	if (!by_hooks || options->child)
		return true;
	sf_fail(err, SF_E_INPUT, SF_HOOKS_LATE);
	return sf_fail_hint(err, "Record a command: stillframe record ... -- COMMAND.");
}

static bool open_listener(struct sf_capture *capture, struct sf_error *err)
{
	/* A command of root's may become another user, and then execute a program whose agent calls. */
	const bool for_all = geteuid() == 0;

	if (!sf_channel_collector_path(getpid(), for_all, capture->path, err))
		return false;
	capture->listener = sf_channel_listen(capture->path, err);
	return capture->listener >= 0 && (!for_all || sf_channel_open_to_all(capture->path, err));
}

/* The variables that the child is to have in its environment. */
static bool prepare_child(struct sf_capture *capture, struct sf_error *err)
{
	const struct sf_setting *settings = capture->options.settings;
	const bool by_hooks = sf_signal_walks_by_hooks(settings);

	if (!sf_signal_library(capture->library, sizeof(capture->library), err))
		return false;
	capture->variable = sf_signal_variable(&capture->options, capture->path);
	if (!capture->variable)
		return sf_fail_memory(err);
	return !(capture->options.runtime || by_hooks || sf_signal_walks_in_rounds(settings) || sf_setting_event(settings)) ||
	       sf_signal_loads(capture->library, by_hooks, capture->loads, err);
}

static bool open_parts(struct sf_capture *capture, struct sf_error *err)
{
	const struct sf_capture_options *options = &capture->options;

	if (!capture->record)
		return sf_fail_memory(err);
	if (!check_hooks(options, err))
		return false;
	sf_channel_sweep();
	return (!(options->child || options->children) || open_listener(capture, err)) &&
	       (!options->child || prepare_child(capture, err)) &&
	       sf_signal_start_text(options, capture->path, capture->start, err);
}

static bool open_capture(const struct sf_capture_options *options, struct sf_capture **ret,
			 struct sf_error *err)
{
	struct sf_capture *capture = calloc(1, sizeof(*capture));

	if (!capture)
		return sf_fail_memory(err);
	capture->options = *options;
	capture->listener = -1;
	capture->knocked = true;
	capture->record = malloc(SF_STREAM_MAX_RECORD);
	if (!open_parts(capture, err)) {
		close_capture(capture);
		return false;
	}
	*ret = capture;
	return true;
}

/* The runtime alone loads the agent where no other program is to be recorded. */
static struct sf_child_needs child_needs(const struct sf_capture *capture)
{
	const bool is_preloaded = capture->variable && !capture->options.runtime;
	struct sf_child_needs needs = { .library = is_preloaded ? capture->library : NULL };
	size_t n = 0;

	needs.variables[n++] = capture->variable;
	for (size_t i = 0; capture->variable && capture->loads[i]; i++)
		needs.variables[n++] = capture->loads[i];
	return needs;
}

static void stop(struct sf_capture *capture)
{
	atomic_store_explicit(&capture->stopped, true, memory_order_relaxed);
}

/* --- from the beginning to the end --- */

/* No agent samples yet, and those that were called have time left to begin. The duration begins with the first one. */
static bool is_beginning(const struct sf_capture *capture, uint64_t now_ns)
{
	return !capture->any_sampled && capture->agents.n > 0 && now_ns - capture->start_ns < SF_SIGNAL_CALL_NS;
}

static bool over(struct sf_capture *capture)
{
	const struct sf_capture_options *options = &capture->options;
	uint64_t now_ns = sf_now_ns();

	if (atomic_load_explicit(&capture->stopped, memory_order_relaxed))
		return true;
	if (capture->child_ended && !(options->children && sf_signal_children_go_on(capture, now_ns)))
		return true;
	if (options->duration_ns && now_ns - capture->start_ns >= options->duration_ns && !is_beginning(capture, now_ns))
		return true;
	if (!options->child)
		return capture->agents.n == 0;
	return !capture->any_sampled && !capture->child_ended && now_ns - capture->start_ns >= SF_SIGNAL_CALL_NS;
}

static bool sample_until_over(struct sf_capture *capture, struct sf_error *err)
{
	bool more;

	while (!over(capture)) {
		if (!sf_signal_look(capture, &more, err))
			return false;
		sf_signal_rest(capture, more);
	}
	return true;
}

/* How much it has written since it began. */
static uint64_t written(const struct sf_signal_agent *agent)
{
	return agent->outbox ? atomic_load(&agent->outbox->tail) : 0;
}

/* How much those that are not done have written since they were told to stop: those that are done count no longer. */
static uint64_t written_since_stop(const struct sf_capture *capture)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < capture->agents.n; i++)
		sum += written(capture->agents.items[i]) - capture->agents.items[i]->written_at_stop;
	return sum;
}

/* How much they may write from now on. */
static uint64_t most_to_write(const struct sf_capture *capture)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < capture->agents.n; i++)
		sum += capture->agents.items[i]->ring_size + LAST_BYTES;
	return sum;
}

/* Until all are done, or the time is over, or they write without end or (after Ctrl-C) nothing. */
static bool wait_until_done(struct sf_capture *capture, struct sf_error *err)
{
	const uint64_t start_ns = sf_now_ns(), most = most_to_write(capture);
	const bool hurry = atomic_load_explicit(&capture->stopped, memory_order_relaxed);
	uint64_t before = 0, now, heard_ns = start_ns, now_ns = start_ns;
	bool more;

	while (capture->agents.n && now_ns < start_ns + STOP_NS &&
	       (!hurry || now_ns < heard_ns + QUIET_NS)) {
		size_t n = capture->agents.n;

		if (!sf_signal_look(capture, &more, err))
			return false;
		now_ns = sf_now_ns();
		now = written_since_stop(capture);
		if (now != before || capture->agents.n != n)
			heard_ns = now_ns;
		before = now;
		if (now > most)
			return true;
		if (capture->agents.n)
			sf_signal_rest(capture, more);
	}
	return true;
}

/* An agent may have sent since the last look that it is ready: it samples. One that has not is not waited for. */
static bool stop_agent(struct sf_capture *capture, struct sf_signal_agent *agent, struct sf_error *err)
{
	bool fine = agent->state != SF_SIGNAL_CALLED || sf_signal_agent_hear(capture, agent, err);

	if (fine && agent->state == SF_SIGNAL_CALLED)
		fine = sf_signal_agent_end(capture, agent, "it had not begun at the end", err);
	agent->written_at_stop = written(agent);
	sf_signal_agent_stop(agent);
	return fine;
}

/* No caller is answered any more. An agent that was told to stop has until then to finish. */
static bool stop_all(struct sf_capture *capture, struct sf_error *err)
{
	bool fine = true;

	close_listener(capture);
	for (size_t i = 0; fine && i < capture->agents.n; i++)
		fine = stop_agent(capture, capture->agents.items[i], err);
	sf_signal_forget_ended(capture);
	fine = fine && wait_until_done(capture, err);
	for (size_t i = 0; fine && i < capture->agents.n; i++)
		fine = sf_signal_agent_end(capture, capture->agents.items[i],
					   "its agent was told to stop, and did not in time", err);
	sf_signal_forget_ended(capture);
	return fine;
}

/* A runtime may load the agent while it runs. There it stays, and is called the next time. */
static int load_and_call(struct sf_capture *capture, int32_t pid, const struct sf_runtime_driver *loader,
			 struct sf_error *err)
{
	char library[4096];

	if (!sf_signal_library(library, sizeof(library), err) ||
	    !loader->load(pid, library, "listen", err))
		return -1;
	if (!sf_signal_note(capture, pid, SF_LOADED_NOTE, err))
		return -1;
	return call(pid, err);
}

/* The channel to a process that was chosen; -1 and err. */
static int call_or_load(struct sf_capture *capture, int32_t pid, struct sf_error *err)
{
	int channel = call(pid, err);
	const struct sf_runtime_driver *loader = channel < 0 ? sf_runtimes_loader(pid) : NULL;

	return loader ? load_and_call(capture, pid, loader, err) : channel;
}

/* All or none. */
static bool call_chosen(struct sf_capture *capture, struct sf_error *err)
{
	for (size_t i = 0; i < sf_capture_n_pids(&capture->options); i++) {
		const int32_t pid = sf_capture_pid(&capture->options, i);
		const int channel = call_or_load(capture, pid, err);

		capture->start_ns = capture->alone_ns = sf_now_ns();
		if (channel < 0 || !sf_signal_agent_add(capture, channel, pid, capture->start_ns, err))
			return false;
	}
	return true;
}

static bool run(struct sf_capture *capture, const struct sf_sink *sink, struct sf_error *err)
{
	capture->sink = sink;
	capture->start_ns = capture->alone_ns = sf_now_ns();
	if (!capture->options.child && !call_chosen(capture, err))
		return false;
	if (!sample_until_over(capture, err) || !stop_all(capture, err) || !sf_feeds_finish(&capture->feeds, sink, err))
		return false;
	if (!capture->any_sampled || (capture->left_alone && !capture->any_ticks))
		return sf_signal_why(capture, err);
	return !capture->left_alone || capture->noted_alone || capture->options.n_more ||
	       sf_signal_note(capture, capture->options.pid, "the process ran on without an agent in it, and was sampled no "
			      "longer: after an exec of a program into which it cannot come, for example", err);
}

const struct sf_engine sf_engine_signal = {
	.name = "signal",
	.summary = "the program samples itself, with the agent inside; needs no privileges",
	.from = "inside",
	.yields = SF_YIELDS_STACKS,
	.reach = SF_REACHES_SEVERAL,
	.options = sf_signal_options,
	.check_settings = sf_signal_check_settings,
	.has_event = sf_runtime_has_event,
	.describe = sf_signal_describe,
	.warning = sf_signal_warning,
	.examine = examine,
	.check = check,
	.event_is_in = sf_runtime_event_is_in,
	.has_runtime = has_runtime,
	.open = open_capture,
	.child_needs = child_needs,
	.run = run,
	.stop = stop,
	.close = close_capture,
};
