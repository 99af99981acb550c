/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How many ticks a sample or a loss stands for: as many as were due in the time that it speaks for, and at least one.
 */
#ifndef SF_FROZEN_TICKS_H
#define SF_FROZEN_TICKS_H

#include <stdint.h>

/* Rounded; period_ns 0: 1. Signal-safe. */
uint32_t sf_ticks(uint64_t ns, uint64_t period_ns);

/*
 * The same for one after another: what rounding leaves over goes to the next one, in *over_ns, which is 0 at first. So they
 * add up to all the time, also where each comes late by less than half a period. Signal-safe.
 */
uint32_t sf_ticks_take(int64_t *over_ns, uint64_t ns, uint64_t period_ns);

#endif
