/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The number of ticks in a time, rounded, with or without a carry to the next call. Signal-safe.
 */
#include "frozen/signal/ticks.h"

#include "frozen/frozen.h"

uint32_t sf_ticks_due(uint64_t ns, uint64_t period_ns)
{
	const uint64_t ticks = period_ns ? (ns + period_ns / 2) / period_ns : 1;

	return ticks > UINT32_MAX ? UINT32_MAX : (uint32_t)ticks;
}

uint32_t sf_ticks(uint64_t ns, uint64_t period_ns)
{
	const uint32_t ticks = sf_ticks_due(ns, period_ns);

	return ticks ? ticks : 1;
}

uint32_t sf_ticks_take(int64_t *over_ns, uint64_t ns, uint64_t period_ns)
{
	const int64_t due_ns = (int64_t)ns + *over_ns;
	const uint32_t ticks = sf_ticks(due_ns > 0 ? (uint64_t)due_ns : 0, period_ns);
	const int64_t left_ns = due_ns - (int64_t)(ticks * period_ns);

	/* At most one period ahead: the surplus of a burst of short samples is soon dropped. */
	*over_ns = left_ns < -(int64_t)period_ns ? -(int64_t)period_ns : left_ns;
	return ticks;
}
