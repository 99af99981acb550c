/* SPDX-License-Identifier: Apache-2.0 */
/* A check that only the perf clock needs: the program may have closed its descriptor. */
#ifndef SF_AGENT_CLOCKS_PERF_H
#define SF_AGENT_CLOCKS_PERF_H

#include <stdbool.h>

#include "frozen/signal/thread_table.h"

/* Whether the entry's descriptor still is its event; also true when it has none. Signal-safe. */
bool sf_agent_clock_perf_lives(const struct sf_thread_entry *entry);

#endif
