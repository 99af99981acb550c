/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A profile added up, for a report: functions, the merged call tree, threads, states, waits,
 * endings, losses. All of it is plain sums over the samples by one clock, made once. By SF_CLOCK_EVENT what is named _ns below
 * is amounts of the measure; cpu_ns, wall_ns and offcpu_ns are times by any clock.
 */
#ifndef SF_RECORDING_PROFILE_AGGREGATE_H
#define SF_RECORDING_PROFILE_AGGREGATE_H

#include "recording/profile/profile.h"

struct sf_function_total {
	uint32_t function;    /* 0: samples of which no frame is known */
	uint64_t self_ns;     /* it was the innermost frame */
	uint64_t total_ns;    /* it was on the stack; several times on one stack counts once */
	uint64_t samples;     /* in which it was the innermost frame */
	uint64_t approximate_ns; /* of self_ns: what calls are inlined there is not known exactly */
};

/* A node of the call tree: one function called through one path of functions. */
struct sf_tree_node {
	uint32_t parent;      /* smaller than its own number; the root is 0 and its own parent */
	uint32_t function;    /* 0: the samples of which no frame is known */
	uint32_t line;        /* the one with the largest weight; 0: unknown */
	uint32_t samples : 31; /* in which it is the innermost node */
	uint32_t approximate : 1; /* calls inlined in it may be missing from some of its stacks */
	uint64_t self_ns, total_ns;
	uint64_t approximate_ns; /* of self_ns */
	uint64_t guessed_ns;  /* of total_ns: that this is the caller is a guess (SF_VIA_GUESS) */
	uint32_t first_child; /* 0: none. Siblings come by total time, longest first */
	uint32_t next;
};

/* The nodes of a profile that have time by a clock, those with the same path of functions as one. Zero is empty. */
struct sf_call_tree {
	struct sf_tree_node *nodes; /* nodes[0] is the root */
	uint32_t n;
	uint64_t guessed_ns;  /* of stacks with a guess in them */
	uint32_t *of;         /* by node of the profile; of[0]: of the samples without a stack */
};

/* False: no memory. sf_call_tree_deinit in any case. */
bool sf_call_tree_init(const struct sf_profile *profile, enum sf_clock clock, struct sf_call_tree *ret);
void sf_call_tree_deinit(struct sf_call_tree *tree);

/*
 * A row of the smaller tables; `key` is a thread's index, a state, a function (of a wait), or a
 * label's index + 1 (0: the samples without one).
 */
struct sf_share {
	uint32_t key;
	uint64_t ns;          /* by the clock, with what was not seen */
	uint64_t cpu_ns, wall_ns; /* of samples */
	uint64_t samples, ticks;
};

struct sf_shares {
	struct sf_share *items; /* longest first; those without time and samples are left out */
	size_t n;
};

/* The processes of one name, together. */
struct sf_process_total {
	uint32_t name;        /* string */
	int32_t  pid;         /* of one of them */
	uint32_t last;        /* the number of the last one that was added */
	uint32_t n_processes, n_threads;
	uint64_t ns;          /* by the clock, with what was not seen */
	uint64_t cpu_ns, wall_ns, samples;
	uint64_t cpu_counted_ns; /* by the kernel */
};

struct sf_lost_total {
	uint64_t ticks, cpu_ns, wall_ns, amount;
};

struct sf_aggregate {
	enum sf_clock clock;
	uint64_t total_ns;    /* by the clock, with unseen_ns */
	uint64_t unseen_ns;   /* of it: CPU time of losses */
	uint64_t managed_ns;     /* of it: the innermost frame is managed code, ... */
	uint64_t approximate_ns; /* ... and may lack inlined calls */
	uint64_t cpu_ns, wall_ns, offcpu_ns;
	uint64_t amount;      /* of the measure, in samples */
	uint64_t samples, sample_ticks, unheld_ticks;
	uint64_t cpu_counted_ns;
	struct sf_lost_total lost, lost_by[SF_N_LOSSES];
	uint64_t ends[SF_N_ENDS]; /* ticks */

	struct sf_function_total *functions; /* by self time, then total time; only weighted ones */
	size_t n_functions;
	struct sf_call_tree tree;
	struct sf_process_total *processes; /* longest first; those without time and samples are left out */
	size_t n_processes;
	struct sf_shares threads, labels;
	struct sf_shares states, waits; /* by elapsed time, whatever the clock; of events by these */
	uint32_t n_unsampled; /* threads without a sample */

	uint64_t holds;
	uint64_t hold_p50_ns, hold_p99_ns, hold_max_ns; /* bucket ends: at most this */
};

bool sf_aggregate_create(const struct sf_profile *profile, enum sf_clock clock,
			 struct sf_aggregate **ret, struct sf_error *err);
void sf_aggregate_destroy(struct sf_aggregate *aggregate); /* takes NULL */

/* A function's name, "[no stack]" for 0; never NULL. */
const char *sf_aggregate_name(const struct sf_profile *profile, uint32_t function);

/* For sf_aggregate_create: the functions, from the tree. call_tree.c. */
bool sf_aggregate_functions(const struct sf_profile *profile, struct sf_aggregate *ret, struct sf_error *err);

#endif
