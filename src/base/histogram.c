/* SPDX-License-Identifier: Apache-2.0 */
/* A histogram of hold times with buckets of an eighth of an octave. */
#include "base/histogram.h"

/* Times below 8 ns have a bucket each; above, the three bits behind the highest one choose. */
static unsigned bucket_of(uint64_t ns)
{
	unsigned highest;

	if (ns < 8)
		return (unsigned)ns;
	highest = 63 - (unsigned)__builtin_clzll(ns);
	return (highest - 2) * 8 + ((unsigned)(ns >> (highest - 3)) & 7);
}

uint64_t sf_histogram_up_to(unsigned bucket)
{
	unsigned shift;

	if (bucket < 8)
		return bucket;
	shift = bucket / 8 - 1;
	return ((uint64_t)(8 + bucket % 8) << shift) + (((uint64_t)1 << shift) - 1);
}

void sf_histogram_add(struct sf_histogram *histogram, uint64_t ns, uint64_t count)
{
	histogram->counts[bucket_of(ns)] += count;
	histogram->n += count;
	if (ns > histogram->max_ns)
		histogram->max_ns = ns;
}

uint64_t sf_histogram_percentile(const struct sf_histogram *histogram, double share)
{
	uint64_t seen = 0;

	for (unsigned bucket = 0; bucket < SF_HISTOGRAM_BUCKETS; bucket++) {
		uint64_t up_to = sf_histogram_up_to(bucket);

		seen += histogram->counts[bucket];
		if (seen && (double)seen >= share * (double)histogram->n)
			return up_to < histogram->max_ns ? up_to : histogram->max_ns;
	}
	return 0;
}
