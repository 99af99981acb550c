/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The service thread: the agent's thread for work that may wait. It holds no thread, and blocks all
 * signals. Its work is:
 *
 * - the code map, renewed at intervals and when a walk met unknown code;
 *
 * - unwind tables, from the disk cache, or built here if stillframe does not build them in time;
 *
 * - IMAGE and NOTE records, the stream's file, the channel to stillframe, and the end of a profile
 *   with a duration.
 *
 * A code map is published by one store to sf_handler.code.map. A replaced map is freed when no slot names
 * it (slot->map) and the sampler has passed a quiet point since (agent->n_quiet).
 */
#ifndef SF_AGENT_SERVICE_SERVICE_H
#define SF_AGENT_SERVICE_SERVICE_H

#include "agent/agent.h"
#include "os/own_fd.h"
#include "os/parcel.h"

/*
 * Makes the first code map in the calling thread, so that the first sample has a map. Then starts the
 * service thread. `channel`: the caller's socket, watched for a STOP; -1: the content of the outbox
 * goes to the file at `path`. `stop` ends the profile from the service thread, if nothing else is
 * starting or stopping it; true: it has ended. On failure nothing is left.
 */
bool sf_service_start(struct sf_agent *agent, int channel, const char *path, bool (*stop)(void),
		      struct sf_error *err);
/*
 * Writes the remaining records and END, sends DONE, closes the channel and the file, ends the thread,
 * and frees maps and images. When the service thread itself calls this, it must return from its
 * thread function at once. No walk may be running. False: the file is not complete.
 */
bool sf_service_stop(struct sf_agent *agent, uint64_t sampler_cpu_ns, struct sf_error *err);
/*
 * The service thread ends, and another one goes on later. Its descriptors wait in the parcel, which the caller has made in its
 * own table. False: the thread has ended the profile's output as sf_service_stop does, since they cannot wait, or could not
 * be taken back; then sf_service_forget is left to call.
 */
bool sf_service_leave(struct sf_agent *agent, struct sf_parcel *parcel);
bool sf_service_return(struct sf_agent *agent, struct sf_parcel *parcel);
/* Called after a successful start: the service thread owns the channel from now on. */
void sf_service_take_channel(struct sf_agent *agent, struct sf_own_fd *channel);
/*
 * Waits, at most timeout_ns, for the unwind tables that stillframe builds. Called before main(), so
 * that the first samples of a program without cached tables can be walked.
 */
void sf_service_wait_for_tables(uint64_t timeout_ns);

/* Waits until the stream file is up to date, at most timeout_ns. */
bool sf_service_flush(uint64_t timeout_ns, struct sf_error *err);

/*
 * In a forked child, or after a return that failed, where there is no service thread: closes the parent's descriptors,
 * and does not touch the parent's memory. images_are_whole: the next start goes on with its images.
 */
void sf_service_forget(bool images_are_whole);

#endif
