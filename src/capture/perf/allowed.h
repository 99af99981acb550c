/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which perf events this user may open: capabilities, kernel.perf_event_paranoid, a system-call filter and a security
 * module decide that. The kernel does not say which of them refused. The sentences here follow from the rights and
 * settings that this process has.
 */
#ifndef SF_CAPTURE_PERF_ALLOWED_H
#define SF_CAPTURE_PERF_ALLOWED_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "capture/engine.h"

/*
 * Whether perf events may be opened on this process (0: on the caller; SF_PERF_ALL_THREADS), and in kernel mode too. If
 * not, what would help.
 */
bool sf_perf_events_allowed(int32_t pid, bool *kernel_ret, struct sf_error *err);

/*
 * Fails with the reason for which an event of this process could not be opened on the CPU, and with what would help.
 * `error`: the errno.
 */
bool sf_perf_fail_open(int32_t pid, int cpu, int error, struct sf_error *err);

/* Fails with what this user must have for the events to show what threads do in the kernel. */
bool sf_perf_fail_kernel(struct sf_error *err);

/* Whether this user may sample and look at all processes of the machine; else an error that says what is missing. */
bool sf_perf_check_all(struct sf_error *err);

/* Fields of the engine perf (engine.h). The first is one of the engine bpf, too. */
bool sf_perf_is_limited(int32_t pid, struct sf_error *why);
void sf_perf_examine(sf_finding_fn *report, void *arg);

#endif
