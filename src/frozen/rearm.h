/* SPDX-License-Identifier: Apache-2.0 */
/*
 * After a sample: when the thread's clock rings next, and how often. Kinds of clocks are in
 * agent/clocks.h; what rings for a thread is in seat->clock: a perf descriptor with the
 * seat's flag SF_SEAT_PERF, else a timer. Clocks of the whole process are nobody's seat, and ring
 * on as they are.
 */
#ifndef SF_FROZEN_REARM_H
#define SF_FROZEN_REARM_H

#include <stdbool.h>
#include <stdint.h>

#include "frozen/seats.h"

/*
 * Whether jitter is worth a system call at this ring: not at every one of a perf clock.
 * Signal-safe.
 */
bool sf_rearm_pays(struct sf_seat *seat, uint64_t period_ns);

/* The next time in period_ns, with jitter (sf_inside.jitter) in 3/4 to 5/4 of it. Signal-safe. */
void sf_rearm(struct sf_seat *seat, uint64_t period_ns);

/*
 * Whether the clock is one that the thread itself cannot set (sf_inside.clocks_apart): the sampler
 * does, with sf_rearm, after the handler has changed seat->period_ns. Due: it has done so since the
 * last change.
 */
bool sf_rearm_is_remote(const struct sf_seat *seat);
bool sf_rearm_is_due(const struct sf_seat *seat);

/*
 * The period after a sample that took cost_ns of the thread's CPU time and speaks for spoken_ns:
 * twice the present one where samples cost more than an eighth, up to 16 times asked_ns; half where
 * they cost little. Signal-safe.
 */
uint64_t sf_rearm_period(uint64_t present_ns, uint64_t asked_ns, uint64_t cost_ns,
			 uint64_t spoken_ns);

#endif
