/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The CPU time of a thread at its end, where the kernel's count of it can no longer be read: the last count, and since
 * then what the records of its switches say.
 *
 * The kernel writes the count of an inherited event when its thread ends, too. That one may be wrong. Where two threads
 * with the same events follow each other on a CPU, the kernel lets them exchange all of their events, and exchanges the
 * counts in the order of its lists (perf_event_context_sched_out() and perf_event_sync_stat() in kernel/events/core.c).
 * In the lists of the thread whose events were opened, and of those that have inherited them, events of two kinds for
 * several CPUs are in different orders. So where switches are recorded, a thread may end with the count of another event.
 *
 * Owned by the holding thread.
 */
#ifndef SF_CAPTURE_PTRACE_ON_CPU_H
#define SF_CAPTURE_PTRACE_ON_CPU_H

#include <stdbool.h>
#include <stdint.h>

struct sf_on_cpu {
	uint64_t cpu_ns;         /* the kernel's count, as it was last read ... */
	uint64_t counted_ns;     /* ... and when that was; 0: never */
	bool     is_followed;    /* there was a record of a switch; then: */
	uint64_t since_ns;       /* when the thread got its CPU; 0: it has none, as far as is known */
	uint64_t ran_ns;         /* since the count was read, by the records */
	uint64_t late_ns;        /* by which the count may be late, as of a thread that ran when it was read */
};

/* The kernel's count has been read. */
void sf_on_cpu_counted(struct sf_on_cpu *on_cpu, uint64_t cpu_ns, uint64_t now_ns);

/* A record: the thread gets its CPU, or leaves it. Where the first one says that it leaves, it has run since before. */
void sf_on_cpu_switch(struct sf_on_cpu *on_cpu, uint64_t time_ns, bool leaves);

/* Records may be missing: the next one is the first again. */
static inline void sf_on_cpu_forget(struct sf_on_cpu *on_cpu)
{
	on_cpu->is_followed = false;
	on_cpu->since_ns = 0;
}

/* The records of switches. */
struct sf_switches {
	bool     are_recorded;   /* there are events of them ... */
	uint64_t from_ns;        /* ... and all records from this time on; UINT64_MAX: the events pause */
};

/* Whether all records of its switches since the count was read have been taken. */
static inline bool sf_on_cpu_is_complete(const struct sf_on_cpu *on_cpu, const struct sf_switches *switches)
{
	return switches->are_recorded && on_cpu->counted_ns && on_cpu->counted_ns >= switches->from_ns;
}

/* The count at the thread's end. `ended_ns`: that of the kernel's record of its end; 0: there is none. */
uint64_t sf_on_cpu_end(const struct sf_on_cpu *on_cpu, uint64_t ended_ns, const struct sf_switches *switches, uint64_t now_ns);

#endif
