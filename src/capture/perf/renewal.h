/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Events that are opened anew while they sample. When a CPU goes offline the kernel ends the events on it, and they do not come
 * back with the CPU (perf_event_exit_cpu() in the kernel's kernel/events/core.c); a CPU that is new has none. So which CPUs are
 * online is looked at ten times a second.
 *
 * For the holding thread.
 */
#ifndef SF_CAPTURE_PERF_RENEWAL_H
#define SF_CAPTURE_PERF_RENEWAL_H

#include <stdbool.h>

#include "capture/perf/events.h"
#include "os/process.h"

struct sf_perf;

/* The CPUs that were online at the last look. Zero: there was none. */
struct sf_perf_online {
	int      cpus[SF_PERF_MAX_CPUS];
	size_t   n;
	uint64_t next_ns;
};

/* The processes that are watched, and the descendants that they have already. False: no memory. */
bool sf_perf_list_processes(const struct sf_perf *perf, struct sf_ids *ret);

/* Whether a CPU is online that was not at the last look. Looks ten times a second. */
bool sf_perf_online_has_more(struct sf_perf_online *online, uint64_t now_ns);

/* After a batch: opens the events anew for which there is a reason. */
void sf_perf_renew(struct sf_perf *perf, uint64_t now_ns);

#endif
