/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Processes without a sample yet, where the whole machine is watched: the parent and the program of each, from perf's
 * records. A process may end before it is looked at; then the records are the only source. An entry is kept until the
 * first sample, or until the process has ended.
 */
#ifndef SF_CAPTURE_PERF_NEWCOMERS_H
#define SF_CAPTURE_PERF_NEWCOMERS_H

#include <stdint.h>

#include "base/vec.h"
#include "os/task.h"

struct sf_perf_newcomer {
	int32_t pid, parent;
	char name[SF_TASK_NAME];
	uint64_t began_ns;                     /* 0: not seen */
	uint64_t first_exec_ns;                /* when it first began to run a program of its own; 0: not seen */
	uint64_t exec_ns;                      /* when it began to run the program that has this name; 0: not seen */
};

struct sf_perf_ended {
	int32_t pid;
	uint64_t time_ns;
};

/*
 * Of so many at the most: the record of an end may be lost. Those with the smallest ids give way, which mostly began first, and
 * are named by /proc if they have a sample after all and live.
 */
#define SF_PERF_MAX_NEWCOMERS 65536u

struct sf_perf_newcomers {
	SF_VEC(struct sf_perf_newcomer) known; /* by pid */
	uint64_t n_dropped;
	SF_VEC(struct sf_perf_ended) ended;    /* in the order of time; each is kept for a while, as samples may follow */
};

/* A process began, or runs already (parent 0, time 0); with its name as far as it is known. Without memory it is not kept. */
void sf_perf_newcomers_fork(struct sf_perf_newcomers *newcomers, int32_t pid, int32_t parent, const char *name, uint64_t time_ns);
/* The process runs another program. Records of several CPUs may come in any order. */
void sf_perf_newcomers_exec(struct sf_perf_newcomers *newcomers, int32_t pid, const char *name, uint64_t time_ns);
/* It has a sample: fills ret with what is known of it (parent 0, name "": nothing), and forgets it. */
void sf_perf_newcomers_take(struct sf_perf_newcomers *newcomers, int32_t pid, struct sf_perf_newcomer *ret);
/*
 * The nearest ancestor that ran a program of its own when it forked, or of which nothing is known here: it has a sample, or
 * began before. A process without an exec has its code and its name. 0: there is none.
 */
int32_t sf_perf_newcomers_origin(const struct sf_perf_newcomers *newcomers, const struct sf_perf_newcomer *of);
/* Its first thread has ended. */
void sf_perf_newcomers_exit(struct sf_perf_newcomers *newcomers, int32_t pid, uint64_t time_ns);
/* The next one that ended before this time, which is forgotten; 0: none. */
int32_t sf_perf_newcomers_next_ended(struct sf_perf_newcomers *newcomers, uint64_t before_ns);
void sf_perf_newcomers_deinit(struct sf_perf_newcomers *newcomers);

/* NULL: none. Valid until the next call. */
const struct sf_perf_newcomer *sf_perf_newcomers_find(const struct sf_perf_newcomers *newcomers, int32_t pid);

#endif
