/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which perf events this user may open and has files for, why others are refused, and the findings of `doctor` about all
 * that.
 */
#include "capture/perf/allowed.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "capture/perf/event_names.h"
#include "capture/perf/events.h"
#include "os/hold.h"
#include "os/kernel_symbols.h"
#include "os/perf_events.h"
#include "os/process.h"
#include "os/rights.h"
#include "os/task.h"
#include "os/tracepoints.h"

#define PROBE_NS 1000000000
#define FILES_PER_LOOK 3 /* at a thread */

static int probe(int32_t tid, int cpu, bool kernel)
{
	const struct sf_perf_event event = {
		.tid = tid, .cpu = cpu, .period_ns = PROBE_NS, .stack_bytes = 8, .kernel = kernel,
	};

	return sf_perf_open_event(&event);
}

/* Own processes may be sampled: so it is the other process that may not. */
static bool may_be_sampled(int cpu)
{
	const int fd = probe(0, cpu, false);

	if (fd >= 0)
		close(fd);
	return fd >= 0;
}

static bool explain_denied(int32_t pid, int cpu, struct sf_error *err)
{
	const int paranoid = sf_perf_paranoid();
	char to_have[128];

	sf_rights_to_have(SF_RIGHT_BIT(PERFMON), to_have, sizeof(to_have));
	if (!sf_rights_missing(SF_RIGHT_BIT(PERFMON)))
		return sf_fail_hint(err, "stillframe has CAP_PERFMON: a system-call filter (seccomp; a container's, perhaps) or a security "
				    "module refuses it.");
	if (paranoid > 2)
		return sf_fail_hint(err, "kernel.perf_event_paranoid is %d: %s, or sysctl kernel.perf_event_paranoid=2, which is enough for own "
				    "processes.", paranoid, to_have);
	if (pid == SF_PERF_ALL_THREADS && may_be_sampled(cpu))
		return sf_fail_hint(err, "To sample all processes %s, or be root.", to_have);
	if (pid != 0 && may_be_sampled(cpu))
		return sf_fail_hint(err, "The process belongs to another user or may not be traced: %s, or be root.", to_have);
	return sf_fail_hint(err, "kernel.perf_event_paranoid is %d, which is enough for own processes: a system-call filter (seccomp; a "
			    "container's, perhaps) or a security module refuses it.", paranoid);
}

bool sf_perf_fail_open(int32_t pid, int cpu, int error, struct sf_error *err)
{
	sf_fail(err, SF_E_DENIED, "perf events cannot be opened: %s", sf_os_error(error));
	if (error == EMFILE || error == ENFILE)
		return sf_fail_hint(err, "Each thread takes one descriptor for each CPU: raise the limit (ulimit -n).");
	if (error != EACCES && error != EPERM)
		return sf_fail_hint(err, "This kernel has no perf events for it, or a container's filter answers in its place.");
	return explain_denied(pid, cpu, err);
}

bool sf_perf_events_allowed(int32_t pid, bool *kernel_ret, struct sf_error *err)
{
	const int32_t tid = pid > 0 ? sf_process_live_id(pid) : pid; /* the kernel has no events for a thread that has exited */
	int cpu = 0, fd;

	sf_perf_cpus(&cpu, 1);
	fd = probe(tid, cpu, true);
	*kernel_ret = fd >= 0;
	if (fd < 0)
		fd = probe(tid, cpu, false);
	if (fd < 0)
		return sf_perf_fail_open(pid, cpu, errno, err);
	close(fd);
	return true;
}

bool sf_perf_fail_kernel(struct sf_error *err)
{
	char to_have[128];

	sf_fail(err, SF_E_DENIED, "perf events do not show what threads do in the kernel (kernel.perf_event_paranoid is %d)", sf_perf_paranoid());
	if (sf_kernel_is_locked())
		return sf_fail_hint(err, "The kernel is locked down (confidentiality): nothing gives it until it is started without.");
	sf_rights_to_have(SF_RIGHT_BIT(PERFMON), to_have, sizeof(to_have));
	return sf_fail_hint(err, "To see what they do there, %s, or sysctl kernel.perf_event_paranoid=1.", to_have);
}

/* The events of a thread take a file for each CPU, and a look at it takes some more. */
static bool has_files(int32_t pid, struct sf_error *why)
{
	int cpus[SF_PERF_MAX_CPUS];
	const size_t n_cpus = sf_perf_cpus(cpus, SF_PERF_MAX_CPUS);
	struct sf_ids ids = { 0 };
	size_t n;

	sf_process_threads(pid, &ids);
	n = ids.ids.n;
	sf_vec_deinit(&ids.ids);
	if (n * (n_cpus + FILES_PER_LOOK) <= sf_task_limit() / 2)
		return true;
	sf_fail(why, SF_E_UNSUPPORTED, "perf events of %zu threads on %zu CPUs need more files than this user may have open (%llu)", n, n_cpus,
		(unsigned long long)sf_task_limit());
	return sf_fail_hint(why, "Raise the limit (ulimit -n).");
}

/* Where threads may not be held, their time in the kernel is a loss. */
bool sf_perf_is_limited(int32_t pid, struct sf_error *why)
{
	bool kernel;

	if (!sf_perf_events_allowed(pid, &kernel, why) || kernel)
		return false;
	if (sf_hold_allowed(pid) != SF_HOLD_REQUESTED)
		return !sf_perf_fail_kernel(why);
	return !has_files(pid, why);
}

/* Of other users' processes the mappings and the memory are read by the right to trace them. */
bool sf_perf_check_all(struct sf_error *err)
{
	unsigned missing;
	char text[128];
	bool kernel;

	if (!sf_perf_events_allowed(SF_PERF_ALL_THREADS, &kernel, err))
		return false;
	missing = sf_rights_missing(SF_RIGHT_BIT(PERFMON) | SF_RIGHT_BIT(TRACE));
	if (!missing)
		return true;
	sf_fail(err, SF_E_DENIED, "this user may not look at all processes");
	return sf_fail_hint(err, "Be root, or %s.", sf_rights_to_have(missing, text, sizeof(text)));
}

/* --- the findings of `doctor` --- */

/* Whether this user may read where the kernel's functions are. */
static void examine_symbols(sf_finding_fn *report, void *arg)
{
	const int hidden = sf_kernel_symbols_hidden();
	char advice[160];

	snprintf(advice, sizeof(advice), "/proc/kallsyms shows no addresses: kernel.kptr_restrict is %d: %shave CAP_SYSLOG.", hidden,
		 hidden > 1 ? "sysctl kernel.kptr_restrict=1, and " : "");
	report(arg, sf_kernel_symbols_are_shown(), "functions of the kernel have names", advice);
}

/* Recorded sleeps need no more than the kernel's frames. */
static void examine_wakings(sf_finding_fn *report, void *arg)
{
	struct sf_tracepoint *tracepoint = malloc(sizeof(*tracepoint));
	struct sf_error err = { 0 };

	if (tracepoint)
		report(arg, sf_tracepoints_name_threads(&err) && sf_tracepoint_find("sched", "sched_waking", tracepoint, &err),
		       "wakings of threads can be recorded (the tracepoint sched_waking)", err.text);
	free(tracepoint);
}

/* One event of each kind: the kernel, or the machine, has the others of the kind, too. */
static void examine_events(sf_finding_fn *report, void *arg, bool kernel)
{
	static const struct {
		const char *name, *what;
	} kinds[] = {
		{ "page-faults", "page faults are counted (record --event)" },
		{ "context-switches", "context switches are counted" },
		{ "sched:sched_process_fork", "tracepoints are counted" },
		{ "cycles", "the processor's events are counted: cycles, instructions, misses" },
	};

	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		struct sf_perf_named_event event;
		struct sf_error err = { 0 };
		const bool fine = sf_perf_event_parse(kinds[i].name, &event, &err) && sf_perf_event_find(&event, kernel, &err);

		report(arg, fine, kinds[i].what, strncmp(err.text, "--event: ", 9) == 0 ? err.text + 9 : err.text);
	}
}

void sf_perf_examine(sf_finding_fn *report, void *arg)
{
	struct sf_error err = { 0 }, of_all = { 0 }, hidden = { 0 };
	const char *hint;
	char text[120];
	bool kernel = false;

	if (!sf_perf_events_allowed(0, &kernel, &err)) {
		report(arg, false, "perf events may be opened", err.text);
		return;
	}
	report(arg, sf_perf_check_all(&of_all), "all processes of the machine may be recorded (--all)", of_all.text);
	snprintf(text, sizeof(text), "kernel.perf_event_paranoid is %d: %s", sf_perf_paranoid(),
		 kernel ? "kernel frames may be sampled" : "threads that are in the kernel are found by holds only");
	sf_perf_fail_kernel(&hidden);
	hint = hidden.text + strcspn(hidden.text, "\n");
	report(arg, kernel, text, hint + strspn(hint, "\n "));
	examine_events(report, arg, kernel);
	if (!kernel)
		return;
	examine_symbols(report, arg);
	examine_wakings(report, arg);
}
