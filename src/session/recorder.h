/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The recorder: the sink that walks each still and writes the resulting sample to a recording. Finished
 * stacks are written as they are.
 *
 * Ticks of a thread that continues to sleep are added up. Once in half a second they are written as one
 * sample that stands for all of them.
 */
#ifndef SF_SESSION_RECORDER_H
#define SF_SESSION_RECORDER_H

#include "base/vec.h"
#include "capture/sink.h"
#include "recording/recording.h"
#include "session/frame_numbers.h"
#include "session/naming.h"
#include "session/recorded_thread.h"
#include "session/walker.h"

struct sf_recorder {
	struct sf_recording *recording;
	struct sf_walker walker;
	SF_VEC(struct sf_recorded_thread) threads; /* by serial - 1 */
	SF_VEC(uint32_t) open;                 /* serials of threads with ticks that wait */
	uint32_t n_labels;                     /* of sleeps */
	uint32_t n_modules;                    /* images up to this number are in the recording */
	uint64_t flushed_ns;
	struct sf_image_numbers image_numbers; /* of finished stacks */
	struct sf_frame_numbers frame_numbers;
	struct sf_early_names *early;          /* NULL: names are looked up at the end only */
	uint64_t n_suffix_frames;          /* frames that are kept of threads' stacks */
	struct sf_tail_room tails;
	bool offline;                          /* nothing is alive: pids and tables mean nothing */
	uint64_t inside_cpu_ns;                /* CPU time of the engine's threads in the processes that are watched */
	char notes[1024];                      /* lines of text, for the summary; what fits */
};

/*
 * `recorder->offline` may be set afterwards, before the first call of the sink: for a stream that
 * was written by processes that are gone.
 */
bool sf_recorder_init(struct sf_recorder *recorder, struct sf_recording *recording, uint32_t max_depth,
		    struct sf_error *err);
void sf_recorder_deinit(struct sf_recorder *recorder);

struct sf_sink sf_recorder_sink(struct sf_recorder *recorder);

#endif
