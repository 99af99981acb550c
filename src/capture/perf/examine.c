/* SPDX-License-Identifier: Apache-2.0 */
/* The findings of `doctor` about perf events: what this user may sample here, and what is missing. */
#include "capture/perf/perf.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "capture/perf/allowed.h"
#include "capture/perf/event_names.h"
#include "os/kernel_symbols.h"
#include "os/rights.h"
#include "os/tracepoints.h"

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
		report(arg, sf_tracepoint_find("sched", "sched_waking", tracepoint, &err),
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
