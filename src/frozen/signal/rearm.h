/* SPDX-License-Identifier: Apache-2.0 */
/*
 * When a thread's next sample comes by its own CPU clock. Kinds of clocks are in agent/clocks/clocks.h. entry->clock is the
 * thread's clock: a perf descriptor if the entry has the flag SF_ENTRY_PERF, else a timer. A clock of the whole process is
 * in no entry, and is not changed.
 *
 * A perf clock rings after each period of the thread's CPU time, at any moment.
 *
 * A timer rings at each tick of the kernel at which the thread runs, and samples are at some of these rings. A timer with the
 * period would ring at the first tick behind it. Where a thread works in turns of some milliseconds, as for requests, the
 * period ends amid one of them, and that tick finds only what comes later in the turn: what is done in the first third of
 * turns of 5 ms had 12 to 15 % of the time so, at 99 Hz and 250 ticks a second, and has 30 to 33 (tests/programs/turns.c).
 */
#ifndef SF_FROZEN_SIGNAL_REARM_H
#define SF_FROZEN_SIGNAL_REARM_H

#include <stdbool.h>
#include <stdint.h>

#include "frozen/signal/state.h"

/* Before a timer rings for the first time: chance decides at which ring the first sample is. Signal-safe. */
void sf_rearm_first(const struct sf_handler_config *config, struct sf_thread_entry *entry);

/* At each ring, whether it has no sample. For the thread itself. Signal-safe. */
bool sf_rearm_passes_over(struct sf_thread_entry *entry);

/*
 * After a sample by the thread's clock, whose period was present_ns and is next_ns now: with config->jitter the next one comes
 * after 3/4 to 5/4 of it. For the thread itself. Signal-safe.
 */
void sf_rearm_next(const struct sf_handler_config *config, struct sf_thread_entry *entry, uint64_t present_ns, uint64_t next_ns);

/* Sets a perf clock to period_ns, with config->jitter to 3/4 to 5/4 of it. Signal-safe. */
void sf_rearm(const struct sf_handler_config *config, struct sf_thread_entry *entry, uint64_t period_ns);

/*
 * `remote`: whether the thread cannot set its clock itself (config->remote_clocks). The sampler sets
 * such a clock with sf_rearm, after the handler has changed entry->period_ns. `due`: whether the
 * sampler has set the clock since the last change.
 */
bool sf_rearm_is_remote(const struct sf_handler_config *config, const struct sf_thread_entry *entry);
bool sf_rearm_is_due(const struct sf_handler_config *config, const struct sf_thread_entry *entry);

/*
 * The period after a sample that took cost_ns of the thread's CPU time and accounts for weight_ns. If
 * samples cost more than an eighth, it is twice the present period, up to 16 times wanted_ns. If they
 * cost little, it is half the present period. Signal-safe.
 */
uint64_t sf_rearm_period(uint64_t present_ns, uint64_t wanted_ns, uint64_t cost_ns,
			 uint64_t weight_ns);

#endif
