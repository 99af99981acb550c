/* SPDX-License-Identifier: Apache-2.0 */
/* The names of events, and whether this machine has them. */
#include "capture/perf/event_names.h"

#include <errno.h>
#include <inttypes.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/options.h"
#include "frozen/runtime_list.h"
#include "os/perf_events.h"
#include "os/rights.h"
#include "os/tracepoints.h"

#define FREQUENT 100000         /* of a processor's counter: so many events between two samples at the least ... */
#define RARE 1000               /* ... also of one that is rare beside them */
#define MAX_EACH UINT64_C(1000000000000)

/* To add one: a line here, with the kernel's number of it (linux/perf_event.h), and its name in docs/engines.md. */
static const struct form {
	const char *name, *alias;   /* as in `perf list` */
	uint32_t type;
	uint64_t config, least;
	bool in_kernel;
} forms[] = {
	{ "page-faults", "faults", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS, 1, false },
	{ "minor-faults", "", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS_MIN, 1, false },
	{ "major-faults", "", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS_MAJ, 1, false },
	{ "context-switches", "cs", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CONTEXT_SWITCHES, 1, true },
	{ "cpu-migrations", "migrations", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_MIGRATIONS, 1, true },
	{ "cycles", "cpu-cycles", PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES, FREQUENT, false },
	{ "instructions", "", PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS, FREQUENT, false },
	{ "cache-misses", "", PERF_TYPE_HARDWARE, PERF_COUNT_HW_CACHE_MISSES, RARE, false },
	{ "branch-misses", "", PERF_TYPE_HARDWARE, PERF_COUNT_HW_BRANCH_MISSES, RARE, false },
};
#define N_FORMS (sizeof(forms) / sizeof(forms[0]))

static bool refuse_name(const char *name, struct sf_error *err)
{
	char list[256] = "";

	for (size_t i = 0; i < N_FORMS; i++)
		snprintf(list + strlen(list), sizeof(list) - strlen(list), ", %s", forms[i].name);
	sf_fail(err, SF_E_INPUT, "--event: there is no event \"%.60s\"", name);
	return sf_fail_hint(err, "The events are cpu-clock%s, the kernel's tracepoints as SYSTEM:NAME, and " SF_RUNTIME_EVENT_NAMES ".", list);
}

static bool take_form(const char *name, struct sf_perf_named_event *ret)
{
	for (size_t i = 0; i < N_FORMS; i++) {
		const struct form *form = &forms[i];

		if (strcmp(name, form->name) != 0 && (!*form->alias || strcmp(name, form->alias) != 0))
			continue;
		*ret = (struct sf_perf_named_event){ .type = form->type, .config = form->config, .least = form->least, .in_kernel = form->in_kernel };
		snprintf(ret->name, sizeof(ret->name), "%s", form->name);
		return true;
	}
	return false;
}

/* SYSTEM:NAME, each of letters, digits, "_" and "-". */
static bool take_tracepoint(const char *name, struct sf_perf_named_event *ret)
{
	static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-";
	const size_t system = strspn(name, letters);
	const size_t rest = name[system] == ':' ? strspn(name + system + 1, letters) : 0;

	if (!system || !rest || name[system + 1 + rest])
		return false;
	*ret = (struct sf_perf_named_event){ .type = PERF_TYPE_TRACEPOINT, .least = 1, .in_kernel = true };
	snprintf(ret->name, sizeof(ret->name), "%s", name);
	return true;
}

static bool take_each(const char *text, uint64_t *ret, struct sf_error *err)
{
	if (sf_parse_count(text, MAX_EACH, ret) && *ret)
		return true;
	return sf_fail(err, SF_E_INPUT, "--event: \"%.40s\" is no number of events: behind the / stands how many there are for one sample, as in page-faults/100", text);
}

bool sf_perf_event_parse(const char *text, struct sf_perf_named_event *ret, struct sf_error *err)
{
	const char *slash = strchr(text, '/');
	const size_t size = slash ? (size_t)(slash - text) : strlen(text);
	char name[SF_PERF_EVENT_NAME];
	uint64_t each = 0;

	if (slash && !take_each(slash + 1, &each, err))
		return false;
	snprintf(name, sizeof(name), "%.*s", (int)(size < sizeof(name) ? size : sizeof(name)), text);
	if (size >= sizeof(name) || !(take_form(name, ret) || take_tracepoint(name, ret)))
		return strcmp(name, "cpu-clock") == 0 ? sf_fail(err, SF_E_INPUT, "--event: how often the CPU clock is sampled is set by --rate") : refuse_name(name, err);
	ret->each = each;
	return true;
}

static bool find_tracepoint(struct sf_perf_named_event *event, struct sf_error *err)
{
	struct sf_tracepoint *tracepoint = malloc(sizeof(*tracepoint));
	char system[SF_PERF_EVENT_NAME];
	bool fine;

	if (!tracepoint)
		return sf_fail_memory(err);
	snprintf(system, sizeof(system), "%s", event->name);
	*strchr(system, ':') = 0;
	fine = sf_tracepoint_find(system, event->name + strlen(system) + 1, tracepoint, err);
	event->config = tracepoint->number;
	if (!fine && err && err->code == SF_E_INPUT)
		sf_fail_hint(err, "`ls /sys/kernel/tracing/events/%s` lists those that it has (as root, where tracefs is mounted).", system);
	free(tracepoint);
	return fine;
}

/* The least that the kernel is asked for: a count of the calling process. */
static bool probe(const struct sf_perf_named_event *event, bool kernel, struct sf_error *err)
{
	struct sf_perf_event wanted = {
		.kind = SF_PERF_COUNTED, .type = event->type, .config = event->config, .each = event->least, .stack_bytes = 8, .kernel = kernel,
	};
	int fd;

	sf_perf_cpus(&wanted.cpu, 1);
	fd = sf_perf_open_event(&wanted);
	if (fd >= 0) {
		close(fd);
		return true;
	}
	if (event->type == PERF_TYPE_HARDWARE && (errno == ENOENT || errno == EOPNOTSUPP || errno == ENODEV)) {
		sf_fail(err, SF_E_UNSUPPORTED, "--event: this machine has no counter for %s: it is a virtual one without a PMU, perhaps", event->name);
		return sf_fail_hint(err, "Leave --event out: then the CPU clock is sampled, which needs none.");
	}
	sf_fail(err, SF_E_DENIED, "--event: the kernel does not count %s for this user: %s", event->name, sf_os_error(errno));
	return sf_fail_hint(err, "`stillframe doctor` says what is missing.");
}

bool sf_perf_event_find(struct sf_perf_named_event *event, bool kernel, struct sf_error *err)
{
	char to_have[128];

	if (event->in_kernel && !kernel) {
		sf_fail(err, SF_E_DENIED, "--event: the event %s happens in the kernel, where this user may not look", event->name);
		return sf_fail_hint(err, "Be root, or %s; page-faults need neither.", sf_rights_to_have(SF_RIGHT_BIT(PERFMON), to_have, sizeof(to_have)));
	}
	return (event->type != PERF_TYPE_TRACEPOINT || find_tracepoint(event, err)) && probe(event, kernel, err);
}
