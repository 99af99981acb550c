/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Setting a thread's CPU clock after a sample: its next expiry and its period. Kinds of clocks are in
 * agent/clocks/clocks.h. entry->clock is the thread's clock: a perf descriptor if the entry has the flag
 * SF_ENTRY_PERF, else a timer. A clock of the whole process is in no entry, and is not changed.
 */
#ifndef SF_FROZEN_SIGNAL_REARM_H
#define SF_FROZEN_SIGNAL_REARM_H

#include <stdbool.h>
#include <stdint.h>

#include "frozen/signal/state.h"

/*
 * Whether jitter is worth a system call at this sample. For a perf clock it is not at each one.
 * Signal-safe.
 */
bool sf_rearm_pays(const struct sf_handler_config *config, struct sf_thread_entry *entry,
		   uint64_t period_ns);

/* The next time in period_ns, with config->jitter in 3/4 to 5/4 of it. Signal-safe. */
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
