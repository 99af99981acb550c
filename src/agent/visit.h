/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A thread of the program on a visit in our code: it starts a profile, stops, pauses or resumes it, and
 * waits for us meanwhile. That is no time of the program's: its ticks are passed over, it is not looked
 * at, and the visit's length counts for nothing. CPU time that it uses stays on its account, for its next
 * sample or the loss at its end.
 */
#ifndef SF_AGENT_VISIT_H
#define SF_AGENT_VISIT_H

#include <stdbool.h>
#include <stdint.h>

#include "frozen/seats.h"

/* Around it, by the thread itself. Where there is no room for its seat they do nothing. Visits do not nest. */
void sf_visit_begin(void);
void sf_visit_end(void);

/* For the sampler: when the present visit began, 0: there is none. Signal-safe. */
uint64_t sf_visit_since(const struct sf_seat *seat);

/*
 * For the sampler: how long visits were that ended since the last call. Restart: its accounts begin now,
 * and of a visit only what is still to come counts.
 */
uint64_t sf_visit_take(struct sf_seat *seat);
void sf_visit_restart(struct sf_seat *seat, uint64_t now_ns);

#endif
