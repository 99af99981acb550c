/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How long holds took: counts in buckets that grow by an eighth of an octave, so that every
 * percentile is known to 12.5 % in 4 KiB, whatever there is to count.
 */
#ifndef SF_BASE_HISTOGRAM_H
#define SF_BASE_HISTOGRAM_H

#include <stdint.h>

#define SF_HISTOGRAM_BUCKETS 496 /* 8 of one nanosecond, then 61 octaves of 8 */

struct sf_histogram {
	uint64_t counts[SF_HISTOGRAM_BUCKETS];
	uint64_t n, max_ns;
};

void sf_histogram_add(struct sf_histogram *histogram, uint64_t ns, uint64_t count);

/* The longest time that falls into a bucket. */
uint64_t sf_histogram_up_to(unsigned bucket);

/* The end of the bucket in which this share (0 to 1) is reached, at most max_ns; 0 if empty. */
uint64_t sf_histogram_percentile(const struct sf_histogram *histogram, double share);

#endif
