/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Of threads that use less CPU time than there is between two moments at which they may have a sample, chance decides which
 * have one. The CPU time of those without one is given to the samples of such threads of the same process, in proportion to
 * what these lack. Where these are few, what is more than they may stand for is nobody's.
 */
#ifndef SF_BASE_USE_SHARES_H
#define SF_BASE_USE_SHARES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What is known of a thread. */
struct sf_cpu_use {
	double   used_ns;       /* CPU time, in all */
	double   unsampled_ns;  /* of it, for which nothing stands, if the thread has no sample; else 0 */
	double   every_ns;      /* CPU time between two moments at which it may have a sample, on average */
	uint32_t n_samples;     /* with CPU time */
};

/* Zeroed at first. */
struct sf_use_shares {
	uint64_t found_ns;      /* when the next three were last found; 0: never */
	double   sample_ns;     /* for which each sample stands */
	double   given, taken;  /* the parts that are moved, of what threads without a sample have and of what samples lack */
	int64_t  pool_ns;       /* what ended threads have given, less what others have taken: at the end of the process, a loss */
};

/* Whether the thread has used so little that chance has a part in how many samples it has. */
bool sf_cpu_use_is_little(const struct sf_cpu_use *use);

/* Fills ret with the use of the i-th thread. False: it takes no part. */
typedef bool sf_cpu_use_fn(const void *arg, size_t i, struct sf_cpu_use *ret);

/* Before a thread of the process ends: finds the parts, if they were not found for a while. `get`: of its n threads, this one among them. */
void sf_use_shares_find(struct sf_use_shares *shares, size_t n, sf_cpu_use_fn *get, const void *arg, uint64_t now_ns);

/*
 * A thread ends: the CPU time that its last sample takes of others; below 0: that it gives. Where several threads end at once,
 * those without a sample come first.
 */
int64_t sf_use_shares_move(struct sf_use_shares *shares, const struct sf_cpu_use *use);

#endif
