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
static inline uint32_t sf_ticks_due(uint64_t ns, uint64_t period_ns)
{
	const uint64_t ticks = period_ns ? (ns + period_ns / 2) / period_ns : 1;

	return ticks > UINT32_MAX ? UINT32_MAX : (uint32_t)ticks;
}

/* The same, but at least 1. Signal-safe. */
static inline uint32_t sf_ticks(uint64_t ns, uint64_t period_ns)
{
	const uint32_t ticks = sf_ticks_due(ns, period_ns);

	return ticks ? ticks : 1;
}

/*
 * The same for consecutive samples: the rounding error is carried to the next call in *over_ns, which is 0 at first. So the
 * ticks add up to the whole time, even if each sample is late by less than half a period. Signal-safe.
 */
static inline uint32_t sf_ticks_take(int64_t *over_ns, uint64_t ns, uint64_t period_ns)
{
	const int64_t due_ns = (int64_t)ns + *over_ns;
	const uint32_t ticks = sf_ticks(due_ns > 0 ? (uint64_t)due_ns : 0, period_ns);
	const int64_t left_ns = due_ns - (int64_t)(ticks * period_ns);

	/* At most one period ahead: the surplus of a burst of short samples is soon dropped. */
	*over_ns = left_ns < -(int64_t)period_ns ? -(int64_t)period_ns : left_ns;
	return ticks;
}

#endif
