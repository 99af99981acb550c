/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The recorder: the sink that walks each still and writes the resulting sample to a recording. Finished
 * stacks are written as they are.
 *
 * Ticks of a thread that continues to sleep are added up. Once in half a second they are written as one
 * sample that stands for all of them.
 */
#ifndef SF_SESSION_KEEPER_H
#define SF_SESSION_KEEPER_H

#include "base/vec.h"
#include "capture/sink.h"
#include "recording/recording.h"
#include "session/kept_thread.h"
#include "session/seen_images.h"
#include "session/seen_places.h"
#include "session/walker.h"

struct sf_keeper {
	struct sf_recording *recording;
	struct sf_walker walker;
	SF_VEC(struct sf_kept_thread) threads; /* by serial - 1 */
	SF_VEC(uint32_t) open;                 /* serials of threads with ticks that wait */
	uint32_t n_modules;                    /* images up to this number are in the recording */
	uint64_t flushed_ns;
	struct sf_seen_images seen_images;     /* of finished stacks */
	struct sf_seen_places seen_places;
	uint64_t n_outer;                      /* frames that are kept of threads' stacks */
	bool offline;                          /* nothing is alive: pids and tables mean nothing */
	char notes[1024];                      /* lines of text, for the summary; what fits */
};

/*
 * `keeper->offline` may be set afterwards, before the first call of the sink: for a stream that
 * was written by processes that are gone.
 */
bool sf_keeper_init(struct sf_keeper *keeper, struct sf_recording *recording, uint32_t max_depth,
		    struct sf_error *err);
void sf_keeper_deinit(struct sf_keeper *keeper);

struct sf_sink sf_keeper_sink(struct sf_keeper *keeper);

#endif
