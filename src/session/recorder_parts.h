/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shared by the two files of the recorder, recorder.c and recorded_samples.c. The functions of a sink are as
 * capture/sink.h says.
 */
#ifndef SF_SESSION_RECORDER_PARTS_H
#define SF_SESSION_RECORDER_PARTS_H

#include "session/recorder.h"

/* The thread with this number of the engine's, or NULL. Valid until a thread is added. */
static inline struct sf_recorded_thread *sf_recorder_thread(struct sf_recorder *recorder, uint32_t serial)
{
	return serial && serial <= recorder->threads.n ? &recorder->threads.items[serial - 1] : NULL;
}

/* `thread`: its number in the recording, or 0. Always true. */
static inline bool sf_recorder_lose(struct sf_recorder *recorder, uint32_t thread, enum sf_loss cause, const struct sf_weight *weight)
{
	const struct sf_lost lost = { .ticks = weight->ticks, .cpu_ns = weight->cpu_ns, .wall_ns = weight->wall_ns, .amount = weight->amount };

	sf_recording_loss(recorder->recording, thread, cause, &lost);
	return true;
}

/* Frees the frames of the thread's stack that are kept for its next sample. */
void sf_recorder_forget_suffix(struct sf_recorder *recorder, struct sf_recorded_thread *thread);

/* Bytes of the stack, or of another one that the walk went on in: of which it needed most. */
uint64_t sf_recorder_stack_used(const struct sf_still *still, const struct sf_trace *trace);

/*
 * Keeps the walker's trace as a sample of `still`. Of the frames that were on the thread's stack at its last sample nothing
 * needs to be found out.
 */
bool sf_recorder_keep(struct sf_recorder *recorder, struct sf_recorded_thread *thread, const struct sf_still *still,
		      const struct sf_weight *weight, struct sf_error *err);

/* --- functions of the sink --- */

bool sf_recorder_trace(void *arg, uint32_t serial, const struct sf_trace *trace, const struct sf_seen *seen,
		       const struct sf_weight *weight, struct sf_error *err);
bool sf_recorder_again(void *arg, uint32_t serial, uint64_t time_ns, const struct sf_weight *weight, struct sf_error *err);
bool sf_recorder_woken(void *arg, uint32_t serial, int32_t waker, const char *waker_name, struct sf_error *err);

#endif
