/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The samples that an export is about, added up: a row for each distinct thread, stack, state
 * and label.
 */
#ifndef SF_EXPORT_TALLY_H
#define SF_EXPORT_TALLY_H

#include <stdio.h>

#include "base/cleanup.h"
#include "recording/profile/profile.h"

struct sf_tally_row {
	uint32_t thread;    /* index */
	uint32_t node;      /* 0: nothing is known of the stack */
	uint32_t label;     /* index of the profile's labels + 1; 0: none */
	uint32_t second_label; /* of another one */
	uint8_t  state;     /* enum sf_state */
	uint64_t ticks;
	uint64_t cpu_ns, wall_ns, offcpu_ns;
	uint64_t amount;    /* of the profile's measure */
	uint64_t weight;    /* by the clock, never 0: nanoseconds, or the amount */
};

/* Rows in the order in which each was first seen. */
struct sf_tally {
	struct sf_tally_row *rows;
	size_t n_rows;
};

/* The name that replaces the stack of a sample without frames (node 0). */
#define SF_NO_STACK "[no stack]"

/*
 * Behind the name of an innermost frame into which calls may be inlined that are not known, where
 * a format has no better place to say so.
 */
#define SF_APPROXIMATE_MARK "~"

/*
 * Samples that weigh nothing by the clock are left out. Without `by_label`, rows that
 * differ in nothing else are one, and its labels are 0.
 */
bool sf_tally_create(const struct sf_profile *profile, enum sf_clock clock, bool by_label,
		     struct sf_tally **ret, struct sf_error *err);
void sf_tally_destroy(struct sf_tally *tally); /* takes NULL */

SF_DEFINE_CLEANUP(struct sf_tally *, sf_tally_destroy)

/* A thread's name for people: its own, else its process's, else "thread". */
const char *sf_tally_thread_name(const struct sf_profile *profile, uint32_t thread);

/* The last line of a writer: flushes, and says so when anything could not be written. */
bool sf_export_finish(FILE *out, struct sf_error *err);

#endif
