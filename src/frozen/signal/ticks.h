/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The number of ticks for which a sample or a loss stands: the ticks that were due in its time, and at least one.
 */
#ifndef SF_FROZEN_SIGNAL_TICKS_H
#define SF_FROZEN_SIGNAL_TICKS_H

#include <stdint.h>

/* The period of a rate in thousandths of a hertz; 0: no rate. */
static inline uint64_t sf_period_ns(uint64_t rate_mhz)
{
	return rate_mhz ? UINT64_C(1000000000000) / rate_mhz : 0;
}

/* The number of ticks that are due in a time, rounded; 0 for a short time. period_ns 0: 1. Signal-safe. */
uint32_t sf_ticks_due(uint64_t ns, uint64_t period_ns);

/* The same, but at least 1. Signal-safe. */
uint32_t sf_ticks(uint64_t ns, uint64_t period_ns);

/*
 * The same for consecutive samples: the rounding error is carried to the next call in *over_ns, which is 0 at first. So the
 * ticks add up to the whole time, even if each sample is late by less than half a period. Signal-safe.
 */
uint32_t sf_ticks_take(int64_t *over_ns, uint64_t ns, uint64_t period_ns);

#endif
