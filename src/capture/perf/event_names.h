/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The events that --event takes: the names that perf(1) gives to the kernel's software and hardware events, and tracepoints as
 * SYSTEM:NAME. Behind a name may stand /N: a sample for each N-th event.
 */
#ifndef SF_CAPTURE_PERF_EVENT_NAMES_H
#define SF_CAPTURE_PERF_EVENT_NAMES_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

#define SF_PERF_EVENT_NAME 64

struct sf_perf_named_event {
	char     name[SF_PERF_EVENT_NAME]; /* without /N, as perf calls it */
	uint32_t type;                     /* enum perf_type_id */
	uint64_t config;                   /* of a tracepoint: its number, once it is found */
	uint64_t least;                    /* so many of it between two samples, if the user does not say how many */
	uint64_t each;                     /* as the user says; 0: not given */
	bool     in_kernel;                /* it happens in the kernel only */
};

/* Takes --event apart, without a look at the machine. False: there is no such event, and err lists those that there are. */
bool sf_perf_event_parse(const char *text, struct sf_perf_named_event *ret, struct sf_error *err);

/*
 * Whether the kernel has the event on this machine, and counts it for this user, who may look into the kernel or not
 * (`kernel`). Finds the number of a tracepoint. If not, err says why, and what to do.
 */
bool sf_perf_event_find(struct sf_perf_named_event *event, bool kernel, struct sf_error *err);

#endif
