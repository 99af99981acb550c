/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A record of a perf event, taken apart. The layout is that of the events which os/linux/perf_events.c opens
 * (perf_event_open(2), "MMAP layout"). Pointers lead into the record. Every count and size is checked: a record that does not
 * hold what it says is refused.
 */
#ifndef SF_CAPTURE_PERF_RECORD_H
#define SF_CAPTURE_PERF_RECORD_H

#include <linux/perf_event.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A code mapping that a process made (PERF_RECORD_MMAP2). `path` ends with a zero. */
struct sf_perf_mapping {
	uint64_t start, size, offset, inode;
	uint32_t major, minor, protection;
	const char *path;
};

struct sf_perf_record {
	uint32_t type;                /* enum perf_event_type */
	int32_t  pid, tid;
	uint32_t cpu;
	uint64_t time_ns;

	/* PERF_RECORD_SAMPLE */
	uint64_t period_ns;           /* of a clock, on its CPU: not in the record, added by the reader of the ring */
	const uint64_t *kernel;       /* addresses of the kernel's frames, innermost first, without marks; NULL if n_kernel is 0 */
	size_t n_kernel;
	const uint64_t *chain;        /* the same of user mode, found by frame pointers: pc, and return addresses; NULL if n_chain is 0 */
	size_t n_chain;
	const uint64_t *regs;         /* NULL: a thread that has none, or is in 32-bit code: */
	bool is_32_bit;
	const uint8_t *stack;         /* from the stack pointer on */
	uint32_t stack_size;          /* what could be copied ... */
	uint32_t stack_room;          /* ... of so much: equal where the copy was cut */

	/* PERF_RECORD_COMM: the new name, and whether an exec gave it. */
	const char *name;
	bool is_exec;

	/* PERF_RECORD_SWITCH, and the same of a CPU's event: the thread left its CPU, or got it; it was ready to go on. */
	bool leaves, is_preempted;

	const uint8_t *raw;           /* a sample of a tracepoint: its fields, and their bytes */
	uint32_t raw_size;

	int32_t parent_pid, parent_tid; /* PERF_RECORD_FORK and EXIT */
	uint64_t n_lost;              /* PERF_RECORD_LOST */
	uint64_t cpu_ns;              /* PERF_RECORD_READ: what the ended thread used on this CPU */
	struct sf_perf_mapping mapping;
};

/* False: it is none that is used here, or does not hold what it says. */
bool sf_perf_record_parse(const struct perf_event_header *header, struct sf_perf_record *ret);

/* The same of a sample of a tracepoint, whose layout is another one. */
bool sf_perf_record_parse_raw(const struct perf_event_header *header, struct sf_perf_record *ret);

/* The time of a record, without taking it apart; 0: it has none. */
uint64_t sf_perf_record_time(const struct perf_event_header *header);

#endif
