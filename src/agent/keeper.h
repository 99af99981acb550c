/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The agent's thread for everything that may wait, while nothing is held by it: the code map (renewed when
 * a walk met unknown code, and now and then), unwind tables (from the disk cache; made here only if nobody
 * else makes them in time), IMAGE and NOTE records, the stream's file, the channel to stillframe, the
 * listening socket, the time-out of a profile. It blocks all signals.
 *
 * A code map is published by one store to sf_inside.map and freed when no slot names it (slot->map)
 * and the sampler has passed a quiet point since.
 */
#ifndef SF_AGENT_KEEPER_H
#define SF_AGENT_KEEPER_H

#include "agent/agent.h"
#include "os/own_fd.h"

/*
 * Makes the first code map in the calling thread, so that the first sample has one; then the thread. `channel`: the
 * caller's, watched for a STOP; -1: what is in the outbox goes to the file at `path`. On failure nothing is left.
 */
bool sf_keep_start(struct sf_agent *agent, int channel, const char *path, struct sf_error *err);
/*
 * Writes what is left and END, says DONE, closes the channel and the file, ends the thread (called from it: the caller returns from it at once), frees maps and
 * images. Nothing may walk any more. False: the file is not complete.
 */
bool sf_keep_stop(struct sf_agent *agent, uint64_t sampler_cpu_ns, struct sf_error *err);
/* The start went well, and the caller's channel is the keeper's from now on. */
void sf_keep_take_channel(struct sf_agent *agent, struct sf_own_fd *channel);
/*
 * Waits, at most timeout_ns, until the unwind tables that a stillframe is making are there: before main(), so that
 * the first samples of a program that nobody has sampled yet can be walked.
 */
void sf_keep_wait_for_tables(uint64_t timeout_ns);

/* The stream file is up to date when it returns; waits at most timeout_ns. */
bool sf_keep_flush(uint64_t timeout_ns, struct sf_error *err);

/* In a forked child: there is no thread; the parent's descriptors are closed and its memory is left alone. */
void sf_keep_forget(void);

#endif
