/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The stacks of threads as they lie in memory: how deep they are, and which holes they have.
 *
 * Depth: how deep the stacks of running processes are, before there are copies of them: for the size of the first copies;
 * and how deep those are whose copies were full. It is an estimate, so nothing but a size may depend on it.
 *
 * Holes: pages that were never touched, as amid a large array of which a function has used little. The kernel's copy of a
 * stack ends at the first one.
 *
 * Where a copy ends before its room, a look shows the mapping of the stack, and with that whether the copy has ended at a
 * hole or at the end of the stack. One look is for all threads of the process whose stacks are not known by then. It
 * fills the last 64 KiB of each stack, which is as much as the kernel copies: a stack that is not deeper has no hole from
 * then on. In a deeper one a hole is filled when a copy has ended there.
 */
#ifndef SF_CAPTURE_PERF_STACKS_H
#define SF_CAPTURE_PERF_STACKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct sf_perf;
struct sf_perf_record;
struct sf_thread;

struct sf_perf_holes {
	int32_t  pid;            /* a process with a thread whose stack is to be looked at; 0: none */
	uint64_t paid_ns;        /* the time up to which ... */
	int64_t  credit_ns;      /* ... this is the CPU time that looks may take */
};

/*
 * Bytes from the stack pointer to the end of the stack, of the deepest sleeping thread whose stack fits in a copy of the
 * kernel's. At most SF_PERF_MAX_STACK; 0: none is known. Of a process a few hundred threads are looked at.
 */
uint32_t sf_perf_depth(const int32_t *pids, size_t n);

/* The same of threads of one process that have slept with these stack pointers. */
uint32_t sf_perf_depth_at(int32_t pid, const uint64_t *sps, size_t n);

/*
 * Whether the thread's stack goes on behind the kernel's copy in the record, though the copy had room. Until the stack is
 * known it is taken to go on. The record has registers.
 */
bool sf_perf_holes_note(struct sf_perf *perf, struct sf_thread *thread, const struct sf_perf_record *record);

/* After a batch: a look at the stacks of a process, if it is wanted. All looks together take 1 % of a CPU at most. */
void sf_perf_holes_fill(struct sf_perf *perf, uint64_t now_ns);

#endif
