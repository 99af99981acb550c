/* SPDX-License-Identifier: Apache-2.0 */
/* The common part of the engines that sample from outside: the thread that samples, and how a run begins and ends. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "capture/ptrace/ptrace.h"
#include "frozen/random.h"
#include "frozen/raw.h"
#include "frozen/signal/ticks.h"
#include "os/clock.h"

const struct sf_option sf_outside_options[] = {
	SF_OUTSIDE_OPTION_MAX_COST,
	{ .name = NULL },
};

bool sf_outside_open(struct sf_capture *capture, const struct sf_capture_options *options, struct sf_error *err)
{
	capture->options = *options;
	capture->child_status = -1;
	capture->period_ns = sf_period_ns(options->rate_mhz);
	capture->blocked_period_ns = sf_period_ns(options->blocked_rate_mhz);
	capture->random = sf_now_ns() | 1;
	return sf_watch_open(&capture->watch, &capture->options, err);
}

void sf_outside_close(struct sf_capture *capture)
{
	sf_pages_close(&capture->pages);
	sf_watch_close(&capture->watch);
}

void sf_outside_stop(struct sf_capture *capture)
{
	atomic_store_explicit(&capture->stopped, true, memory_order_relaxed);
}

int sf_outside_child_status(const struct sf_capture *capture)
{
	return capture->child_status;
}

uint64_t sf_outside_jitter(struct sf_capture *capture, uint64_t period_ns)
{
	return period_ns * 3 / 4 + sf_random(&capture->random) % (period_ns / 2 + 1);
}

static struct sf_overhead_limit_clocks read_clocks(void)
{
	return (struct sf_overhead_limit_clocks){
		.now_ns = sf_now_ns(), .holding_ns = sf_raw_thread_cpu_ns(),
		.all_ns = sf_raw_process_cpu_ns(),
	};
}

uint64_t sf_outside_begin_limit(struct sf_capture *capture)
{
	const char *given = sf_setting(capture->options.settings, "max-cost");
	const struct sf_overhead_limit_clocks clocks = read_clocks();
	const long n_cpus = sysconf(_SC_NPROCESSORS_ONLN);

	sf_overhead_limit_begin(&capture->limit, n_cpus > 0 ? (unsigned)n_cpus : 1,
				given ? (unsigned)strtoul(given, NULL, 10) : 0, &clocks);
	return clocks.now_ns;
}

struct sf_overhead_limit_clocks sf_outside_look_at_costs(struct sf_capture *capture)
{
	const struct sf_overhead_limit_clocks clocks = read_clocks();

	if (clocks.now_ns - capture->limit.looked_ns >= SF_OVERHEAD_LOOK_NS)
		sf_overhead_limit_look(&capture->limit, clocks.now_ns, sf_idle_ns());
	return clocks;
}

uint64_t sf_outside_end(const struct sf_capture *capture, uint64_t start_ns)
{
	return capture->options.duration_ns ? start_ns + capture->options.duration_ns : UINT64_MAX;
}

bool sf_outside_over(const struct sf_capture *capture, uint64_t end_ns, uint64_t now_ns)
{
	return atomic_load_explicit(&capture->stopped, memory_order_relaxed) || now_ns >= end_ns;
}

bool sf_outside_given_up(const struct sf_capture *capture)
{
	return (capture->child_ended && !capture->options.children) || sf_relay_failed(capture->relay);
}

/* The sampling thread, from its first to its last sample. */
struct sampling {
	struct sf_capture *capture;
	void (*sample)(struct sf_capture *capture);
	struct sf_error *err;
	bool fine;
};

static void sample_until_over(void *arg)
{
	struct sampling *sampling = arg;
	struct sf_capture *capture = sampling->capture;

	sampling->fine = sf_alarm_open(sampling->err) && sf_hold_time_open(&capture->hold_time, sampling->err);
	if (sampling->fine) {
		sampling->sample(capture);
		sf_ptrace_let_all_go(capture);
		sf_watch_end(&capture->watch, sf_now_ns());
		sf_hold_time_close(&capture->hold_time);
	}
	sf_alarm_close();
}

/* Processes whose programs, or some of them, were 32-bit. */
static bool note_32_bit(const struct sf_capture *capture, const struct sf_sink *sink, struct sf_error *err)
{
	const struct sf_watch *watch = &capture->watch;
	char what[60] = "ran a 32-bit program", text[200];

	if (!sink->note || !watch->n_32_bit)
		return true;
	if (watch->n_32_bit > 1)
		snprintf(what, sizeof(what), "and %u more ran 32-bit programs", watch->n_32_bit - 1);
	snprintf(text, sizeof(text), "pid %d (%s) %s, whose stacks are not read: that time is among the losses",
		 watch->first_32_bit, watch->name_32_bit, what);
	return sink->note(sink->arg, watch->first_32_bit, text, err);
}

static bool note_without_files(const struct sf_capture *capture, const struct sf_sink *sink, struct sf_error *err)
{
	const unsigned n = capture->watch.most_without_files;
	char text[240];

	if (!sink->note || !n)
		return true;
	snprintf(text, sizeof(text), "%u thread%s not sampled: stillframe may open only %llu files (ulimit -n), and needs two for each "
		 "thread; CPU time of those is the loss `unseen`", n, n == 1 ? " was" : "s were", (unsigned long long)sf_task_limit());
	return sink->note(sink->arg, capture->options.pid, text, err);
}

static bool note_no_turns(const struct sf_capture *capture, const struct sf_sink *sink, struct sf_error *err)
{
	if (!sink->note || !capture->held_any || !capture->displacement.is_missing)
		return true;
	return sink->note(sink->arg, capture->options.pid, "this kernel does not show when threads got their CPUs, and threads were held where the "
			  "scheduler let stillframe run: shares of calls that wait for or wake others may be wrong by some percent (stillframe doctor)", err);
}

bool sf_outside_run(struct sf_capture *capture, const struct sf_sink *sink, void (*sample)(struct sf_capture *capture),
		    struct sf_error *err)
{
	struct sampling sampling = { .capture = capture, .sample = sample, .err = err };
	bool fine;

	if (!sf_relay_open(sink, &capture->relay, err))
		return false;
	capture->watch.relay = capture->relay;
	sf_relay_on_wait(capture->relay, sf_ptrace_let_go_while_waiting, capture);
	capture->displacement.is_missing = !sf_task_shows_turns();
	fine = sf_hold_run(sample_until_over, &sampling, err) && sampling.fine;
	fine = sf_relay_close(capture->relay, fine ? err : NULL) && fine;
	return fine && note_32_bit(capture, sink, err) && note_without_files(capture, sink, err) &&
	       note_no_turns(capture, sink, err);
}
