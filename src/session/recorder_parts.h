/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shared by the two files of the recorder, recorder.c and recorded_samples.c. The functions of a sink are as
 * capture/sink.h says.
 */
#ifndef SF_SESSION_RECORDER_PARTS_H
#define SF_SESSION_RECORDER_PARTS_H

#include <stdio.h>
#include <string.h>

#include "base/output.h"
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

/* A function of the sink, too. */
static inline bool sf_recorder_note(void *arg, int32_t pid, const char *text, struct sf_error *err)
{
	struct sf_recorder *recorder = arg;
	size_t used = strlen(recorder->notes);
	char line[sizeof(recorder->notes)];

	snprintf(line, sizeof(line), "%s", text);
	sf_sanitize(line);
	if (used + strlen(line) + 2 <= sizeof(line) && !strstr(recorder->notes, line))
		snprintf(recorder->notes + used, sizeof(line) - used, "%s\n", line);
	return sf_recording_note(recorder->recording, pid, text, err);
}

/* Frees the frames of the thread's stack that are kept for its next sample. */
void sf_recorder_forget_suffix(struct sf_recorder *recorder, struct sf_recorded_thread *thread);

/* --- functions of the sink --- */

struct sf_verdict sf_recorder_sample(void *arg, uint32_t serial, struct sf_still *still, const struct sf_weight *weight,
				     uint64_t hold_ns, bool last, struct sf_error *err);
bool sf_recorder_trace(void *arg, uint32_t serial, const struct sf_trace *trace, const struct sf_seen *seen,
		       const struct sf_weight *weight, struct sf_error *err);
bool sf_recorder_again(void *arg, uint32_t serial, uint64_t time_ns, const struct sf_weight *weight, struct sf_error *err);
bool sf_recorder_woken(void *arg, uint32_t serial, int32_t waker, const char *waker_name, struct sf_error *err);

#endif
