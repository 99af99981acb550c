/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A child process that looks up the names of one image: a copy of this process with the image's file, memory for its
 * answers, and limits for its time and its memory. It ignores the signals of the terminal: the parent decides when to end it,
 * and its end is the child's. For src/symbols only.
 */
#ifndef SF_SYMBOLS_LOOKUP_CHILD_H
#define SF_SYMBOLS_LOOKUP_CHILD_H

#include <sys/types.h>

#include "symbols/answers.h"

/* The work of a child. */
struct sf_lookup_work {
	int fd;                     /* the image's file */
	const char *path;
	bool is_perf_map;           /* no ELF file */
	bool debug_data;            /* else symbol tables only */
	uint64_t cpu_ns;            /* that it may take */
	const uint64_t *addresses;
	size_t n;
	struct sf_answers *answers; /* with the addresses' numbers */
};

struct sf_lookup_child {
	pid_t pid;              /* 0: there is none */
	int fd;                 /* a pipe, closed when it has ended */
	uint64_t until_ns;      /* it may go on */
	uint64_t cpu_ns;        /* that it had used, */
	uint64_t moved_ns;      /* and when that was more than before */
	bool stuck;             /* it makes no progress */
};

/* Forks. The answers are complete if the child has ended by itself and says so in their memory. */
bool sf_lookup_child_start(struct sf_lookup_work *work, struct sf_lookup_child *ret, struct sf_error *err);

/* Reads the CPU time that it has used. False: it is stuck. */
bool sf_lookup_child_look(struct sf_lookup_child *child);

/* Ends it, if it has not ended already. Returns the CPU time that it took. */
uint64_t sf_lookup_child_end(struct sf_lookup_child *child);

#endif
