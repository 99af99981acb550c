/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A child process that looks up the names of one image: a copy of this process with the image's file, memory for its
 * answers, and limits for its time and its memory. It ignores the signals of the terminal: the parent decides when to end it,
 * and its end is the child's. For src/symbols only.
 *
 * The answers are in memory that both share, at the same address. The parent reads them after the child has ended. The child
 * reads hostile data, so its answers are hostile too: each pointer is checked.
 */
#ifndef SF_SYMBOLS_LOOKUP_CHILD_H
#define SF_SYMBOLS_LOOKUP_CHILD_H

#include <stdatomic.h>
#include <sys/types.h>

#include "base/intern.h"
#include "base/vec.h"
#include "symbols/symbols.h"

struct sf_answers {
	size_t size, n;                   /* bytes of memory; addresses */
	struct sf_answers_memory {
		size_t used;              /* bytes; texts and answers follow the array */
		bool complete;            /* all addresses got the answers that they can get */
		struct sf_answer *_Atomic of[]; /* each address (lookup_child.c); NULL: none */
	} *memory;

	/* In the child. */
	const size_t *numbers;            /* of the addresses, by the index of a sf_location_fn */
	struct sf_intern *texts;          /* by where they come from */
	SF_VEC(const char *) copies;      /* of the texts, by number - 1 */
};

/* Zeroed memory of `size` bytes for the answers to `n` addresses. False: there is none. */
bool sf_answers_open(struct sf_answers *ret, size_t n, size_t size);
void sf_answers_close(struct sf_answers *answers);

/* In the parent: passes on what has come. False: some of it made no sense. */
bool sf_answers_report(const struct sf_answers *answers, sf_location_fn *fn, void *arg);

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
