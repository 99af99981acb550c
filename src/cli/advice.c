/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/advice.h"

#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

#include "base/output.h"
#include "os/process.h"

#define NOTABLE_NS 100000000 /* the kernel's clock for descendants ticks 100 times a second */

/* Of the processes that were chosen and of all that they started: what ended ones used, and living ones that are not recorded. */
static uint64_t sum_of_children(const struct sf_capture_options *capture)
{
	struct sf_ids processes = { 0 };
	uint64_t sum_ns = 0, ns;
	bool fine = true;

	for (size_t i = 0; fine && i < sf_capture_n_pids(capture); i++)
		fine = sf_vec_push(&processes.ids, sf_capture_pid(capture, i));
	fine = fine && sf_process_descendants(&processes);
	for (size_t i = 0; fine && i < processes.ids.n; i++) {
		const int32_t pid = processes.ids.items[i];

		sum_ns += sf_process_children_cpu(pid);
		if (!sf_capture_is_chosen(capture, pid) && sf_process_cpu(pid, &ns))
			sum_ns += ns;
	}
	sf_vec_deinit(&processes.ids);
	return sum_ns;
}

void sf_children_cpu_begin(struct sf_children_cpu *cpu, const struct sf_session_options *options)
{
	*cpu = (struct sf_children_cpu){ .before_ns = options->launched ? 0 : sum_of_children(&options->capture) };
}

static uint64_t time_ns(struct timeval time)
{
	return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_usec * 1000u;
}

/* Of a command that the engine has waited for: what it and its descendants used, without its own. Names were looked up by children, too. */
static uint64_t used_below(const struct sf_session_result *result)
{
	struct rusage usage;
	uint64_t all_ns, own_ns = result->totals.cpu_counted_ns + result->names_ns;

	getrusage(RUSAGE_CHILDREN, &usage);
	all_ns = time_ns(usage.ru_utime) + time_ns(usage.ru_stime);
	return all_ns > own_ns ? all_ns - own_ns : 0;
}

/* An agent comes into the children, too, but not into all of them. The CPU time of the recorded ones is a part of the sum. */
static void count_without_agent(struct sf_children_cpu *cpu, const struct sf_session_options *options,
				const struct sf_session_result *result)
{
	const uint64_t now_ns = sum_of_children(&options->capture), known_ns = cpu->before_ns + result->totals.cpu_counted_ns;

	cpu->have_no_agent = true;
	if (now_ns > known_ns)
		cpu->ns = now_ns - known_ns;
}

void sf_children_cpu_end(struct sf_children_cpu *cpu, const struct sf_session_options *options,
			 const struct sf_session_result *result)
{
	uint64_t now_ns;

	if (options->capture.children) {
		if (strcmp(options->engine->from, "inside") == 0)
			count_without_agent(cpu, options, result);
		return;
	}
	if (result->child_status >= 0) {
		cpu->ns = used_below(result);
		return;
	}
	now_ns = sum_of_children(&options->capture);
	if (now_ns > cpu->before_ns)
		cpu->ns = now_ns - cpu->before_ns;
}

void sf_advise_children(const struct sf_children_cpu *cpu, struct sf_session_result *result)
{
	const size_t used = strlen(result->notes);
	char time[32];

	if (cpu->ns < NOTABLE_NS || cpu->ns < result->totals.cpu_counted_ns)
		return;
	snprintf(result->notes + used, sizeof(result->notes) - used,
		 "processes that it started used %s of CPU time that is not in the recording: %s\n", sf_format_time(time, cpu->ns),
		 cpu->have_no_agent ? "before an agent came into them, or without one, since they have an environment that was cleared, "
				      "gain rights or are linked statically, perhaps. An engine that watches from outside samples them"
				    : "--children samples them, too");
}

/* The cause of most losses; -1: nothing was lost. */
static int main_loss(const struct sf_recording_totals *totals)
{
	int most = -1;

	for (int i = 0; i < SF_N_LOSSES; i++) {
		if (totals->losses_by[i] > (most < 0 ? 0 : totals->losses_by[most]))
			most = i;
	}
	return most;
}

/* A program that ended before its first sample was due. */
static void hint_at_rate(const struct sf_capture_options *capture, const struct sf_recording_totals *totals, struct sf_error *err)
{
	const uint64_t period_ns = capture->rate_mhz ? UINT64_C(1000000000000) / capture->rate_mhz : 0;
	char period[32];

	if (totals->cpu_counted_ns >= period_ns)
		return;
	sf_format_time(period, period_ns);
	sf_fail_hint(err, "It used less than the %s of CPU time between two samples: -F 10khz takes a hundred in 10 ms.", period);
}

static void hint(const struct sf_session_options *options, const struct sf_recording_totals *totals, bool ended,
		 struct sf_error *err)
{
	const struct sf_capture_options *capture = &options->capture;
	const int loss = main_loss(totals);

	if (loss >= 0)
		sf_fail_hint(err, "%llu tick%s lost: %s.", (unsigned long long)totals->losses,
			     totals->losses == 1 ? " was" : "s were", sf_loss_text((unsigned)loss));
	if (capture->threads)
		sf_fail_hint(err, "Only threads whose names match --threads '%.60s' are sampled.", capture->threads);
	else if (capture->filter)
		sf_fail_hint(err, "Only processes that fit every --filter are sampled; `ps -eo user,comm` lists users and names.");
	else if (ended) {
		hint_at_rate(capture, totals, err);
		sf_fail_hint(err, "A program that it started in the background is recorded %sby its own pid: -p PID.",
			     capture->children ? "" : "with --children, or ");
	} else if (!capture->blocked_rate_mhz && !sf_setting_event(capture->settings))
		sf_fail_hint(err, "With --clock cpu only running threads are sampled; --clock both shows where "
			     "threads sleep.");
}

bool sf_check_sampled(const struct sf_session_options *options, const struct sf_session_result *result, bool ended,
		      const char *name, struct sf_error *err)
{
	char time[32];

	if (result->totals.ticks > result->totals.losses)
		return true;
	if (*result->totals.measure && !result->totals.amount_counted) /* the event did not happen */
		return true;
	sf_format_time(time, result->duration_ns);
	if (options->capture.all)
		sf_fail(err, SF_E_GONE, "nothing was sampled of %s in %s", options->command, time);
	else
		sf_fail(err, SF_E_GONE, ended ? "nothing was sampled: %s (pid %d) ended after %s"
					      : "nothing was sampled of %s (pid %d) in %s",
			name, options->capture.pid, time);
	hint(options, &result->totals, ended, err);
	return false;
}
