/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How deep the stacks of running processes are, before there are copies of them: for the size of the first copies; and how deep
 * those are whose copies were full. It is an estimate, so nothing but a size may depend on it.
 */
#ifndef SF_CAPTURE_PERF_DEPTH_H
#define SF_CAPTURE_PERF_DEPTH_H

#include <stddef.h>
#include <stdint.h>

/*
 * Bytes from the stack pointer to the end of the stack, of the deepest sleeping thread whose stack fits in a copy of the
 * kernel's. At most SF_PERF_MAX_STACK; 0: none is known. Of a process a few hundred threads are looked at.
 */
uint32_t sf_perf_depth(const int32_t *pids, size_t n);

/* The same of threads of one process that have slept with these stack pointers. */
uint32_t sf_perf_depth_at(int32_t pid, const uint64_t *sps, size_t n);

#endif
