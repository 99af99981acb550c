/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Perf events of threads on one CPU each, and the ring into which the kernel writes their records (perf_event_open(2)).
 * The contents of a ring are the kernel's records (linux/perf_event.h); capture/perf/ reads them.
 *
 * A descriptor belongs to the caller, and is close-on-exec. All times are on the clock of sf_now_ns().
 */
#ifndef SF_OS_PERF_EVENTS_H
#define SF_OS_PERF_EVENTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "frozen/arch.h"

#define SF_PERF_MAX_STACK 65528u /* bytes of a copy: the kernel takes less than 2^16, a multiple of 8 */

#define SF_PERF_ALL_THREADS (-1) /* `tid` of an event that samples whatever runs on its CPU, but the idle task */
#define SF_PERF_ALL_CPUS (-1)    /* `cpu` of a meter of a thread */

enum sf_perf_kind {
	SF_PERF_CLOCK,         /* a sample after each period of CPU time; and the records of processes, threads and mappings */
	SF_PERF_SWITCHES,      /* a sample each time that a thread leaves its CPU, and a record each time that one leaves or gets a CPU */
	SF_PERF_WAKINGS,       /* the tracepoint `tracepoint`, without a stack: its own fields only */
	SF_PERF_SIGNALS,       /* the tracepoint `tracepoint`, with registers and stack as they are in user mode */
	SF_PERF_COUNTED,       /* a sample after each `each` of an event; and the records of a clock */
	SF_PERF_METER,         /* only the count of such an event */
};

/* An event that samples a thread, and the threads that it starts later, while they are on `cpu`. */
struct sf_perf_event {
	enum sf_perf_kind kind;
	int32_t  tid;          /* or SF_PERF_ALL_THREADS */
	bool     in_cgroup;    /* of all threads those in a control group, whose folder is open as `tid` */
	int      cpu;
	uint64_t period_ns;    /* of a clock: CPU time between two samples */
	uint32_t tracepoint;   /* its number (os/tracepoints.h) */
	uint32_t type;         /* of SF_PERF_COUNTED and SF_PERF_METER: enum perf_type_id ... */
	uint64_t config;       /* ... and which of these */
	uint64_t each;
	bool     on_exec;      /* it counts from the thread's next exec on, also if it is not enabled */
	uint32_t stack_bytes;  /* of the user stack, copied from sp on; a multiple of 8 */
	bool     children;     /* also the processes that it starts later */
	bool     kernel;       /* also while they are in the kernel, with the kernel's call chain */
	bool     user_chain;   /* with what the kernel finds in user mode by the frame pointers */
};

/*
 * Opens it, disabled. -1 and errno: ESRCH (it has ended), EACCES or EPERM (not allowed), EMFILE. Without `kernel` the rights
 * that a user has over an own process are enough where kernel.perf_event_paranoid is 2 or less.
 */
int sf_perf_open_event(const struct sf_perf_event *event);

/* An event of the calling process that never counts: it owns the ring of a CPU. -1 and errno. */
int sf_perf_open_ring_owner(int cpu);

/*
 * Maps the ring of an owner: a page of state and `size` bytes, a power of two and at least a page. NULL and errno (EPERM:
 * more than this user may lock). sf_perf_unmap() ends it.
 */
void *sf_perf_map(int owner, size_t size);
void sf_perf_unmap(void *ring, size_t size);

/* From now on the event writes into the ring of an owner on the same CPU. False and errno. */
bool sf_perf_redirect(int fd, int owner);

/* From now on only records of a tracepoint whose fields fit (the kernel's Documentation/trace/events.rst). False and errno. */
bool sf_perf_set_filter(int fd, const char *filter);

/* The same for the events that other threads have inherited from it. */
bool sf_perf_enable(int fd);
bool sf_perf_disable(int fd);

/* How many there were of the event while it was enabled, those of threads that have inherited it included. False and errno. */
bool sf_perf_count(int fd, uint64_t *ret);

/* Waits until a ring is half full or the time has come, whichever is first. Returns early for a signal. */
void sf_perf_wait(const int *owners, size_t n, uint64_t until_ns);

/* Appends the numbers of the CPUs that are on; returns how many. At most `capacity`. */
size_t sf_perf_cpus(int *ret, size_t capacity);

/* kernel.perf_event_paranoid; 2 where it cannot be read. */
int sf_perf_paranoid(void);

/* The number of registers in a sample, and how they become a register file. `values`: sf_perf_n_regs. */
extern const unsigned sf_perf_n_regs;
void sf_perf_load_regs(const uint64_t *values, struct sf_regs *ret);
/* The first argument of the system call that the thread is in. */
uint64_t sf_perf_first_argument(const uint64_t *values);

#endif
