/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The agent's thread for everything that may wait, while nothing is held by it: the code map (renewed when
 * a walk met unknown code, and once a second), unwind tables (from the disk cache; made here only if nobody
 * else makes them in time), IMAGE and NOTE records, the stream's file, the channel to stillframe, the
 * listening socket, the time-out of a profile. It blocks all signals.
 *
 * A code map is published by one store to sf_inside.map and freed when no slot names it (slot->map)
 * and the sampler has passed a quiet point since.
 */
#ifndef SF_AGENT_KEEPER_H
#define SF_AGENT_KEEPER_H

#include "agent/agent.h"

/* Makes the first code map in the calling thread, so that the first sample has one; then the thread. */
bool sf_keep_start(struct sf_agent *agent, int channel, struct sf_error *err);
/* Writes what is left, ends the thread (unless called from it), frees maps and images. */
void sf_keep_stop(struct sf_agent *agent);
/* The stream file is up to date when it returns. */
bool sf_keep_flush(struct sf_keep *keep, struct sf_error *err);
uint64_t sf_keep_cpu_ns(const struct sf_keep *keep);

#endif
