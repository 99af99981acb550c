/* SPDX-License-Identifier: Apache-2.0 */
/* The runtimes of a process that is watched from outside, and how its memory is read. */
#ifndef SF_SESSION_PROCESS_RUNTIMES_H
#define SF_SESSION_PROCESS_RUNTIMES_H

#include "base/vec.h"
#include "recording/recording.h"
#include "runtime/runtimes.h"
#include "target/memory.h"

struct sf_recorded_places {
	SF_VEC(uint32_t) numbers;         /* the recording's number of each place; 0: none yet */
};

struct sf_process_runtimes {
	struct sf_runtimes all;
	struct sf_memory *memory;         /* what they read; NULL before there is something to try */
	int32_t memory_id;                /* sf_process_live_id() of the process */
	bool has_inner_ids, inner_ids;    /* its threads' ids differ in its own pid namespace */
	struct sf_recorded_places recorded[SF_N_RUNTIMES];
};

void sf_process_runtimes_deinit(struct sf_process_runtimes *runtimes);  /* leaves it as new */

/*
 * Looks for runtimes in the process's map, if the map is new, and attaches. The runtimes that are found
 * are put into the map and into the process. Nothing happens if there is none, or if there is nothing
 * new to try.
 */
void sf_process_runtimes_look(struct sf_process_runtimes *runtimes, struct sf_process *process,
			      struct sf_images *images);

/* Makes older data of the process invalid: later reads return the state from now on. */
void sf_process_runtimes_renew(struct sf_process_runtimes *runtimes);

/* Refreshes the runtimes if that is due (runtimes.h). True: the map has changed. No walk may be under way. */
bool sf_process_runtimes_refresh(struct sf_process_runtimes *runtimes, struct sf_process *process,
				 bool unknown_code);

/* The handles of a thread, for its still, and its name; by the ids that we see. False: there is no handle. */
bool sf_process_runtimes_handles(struct sf_process_runtimes *runtimes, int32_t pid, int32_t tid,
				 uint64_t ret[SF_MAX_RUNTIMES]);
enum sf_naming sf_process_runtimes_name(struct sf_process_runtimes *runtimes, int32_t pid, int32_t tid,
					char ret[SF_RUNTIME_NAME]);

/*
 * The lock for which a thread waits, and its owner (runtime.h). Ids are those of this process's namespace, but for the
 * owner's.
 */
bool sf_process_runtimes_lock_wait(struct sf_process_runtimes *runtimes, int32_t pid, int32_t tid,
				   const struct sf_trace *trace, bool timed, struct sf_lock_wait *ret);

/* As sf_runtimes_awaiters. */
uint32_t sf_process_runtimes_awaiters(struct sf_process_runtimes *runtimes, const struct sf_still *still,
				      const struct sf_trace *trace, struct sf_frame ret[SF_MAX_AWAITERS],
				      uint32_t *at_ret);

/*
 * Describes, in the recording, those of the frames that belong to a runtime. This must happen before the process runs on
 * for long: it may remove the code. The `address` of these frames becomes the recording's number of the description.
 * `runtimes` NULL: there is none.
 */
bool sf_process_runtimes_describe(struct sf_process_runtimes *runtimes, struct sf_recording *recording,
				  struct sf_frame *frames, uint32_t n_frames, struct sf_error *err);

#endif
