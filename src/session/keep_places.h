/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a recording keeps of runtimes: the places that a walk passed through, by name; the names of
 * threads.
 */
#ifndef SF_SESSION_KEEP_PLACES_H
#define SF_SESSION_KEEP_PLACES_H

#include "recording/recording.h"
#include "session/walker.h"

#define SF_KEEP_NAME 256

/*
 * Describes, in the recording, the n_frames innermost frames of the walker's last trace, as far as a runtime
 * of `pid` made them, now, as nobody can later; their `address` becomes the recording's number
 * of the place.
 */
bool sf_keep_places(struct sf_walker *walker, struct sf_recording *recording, int32_t pid,
		    uint32_t n_frames, struct sf_error *err);

/* The full name that a runtime has for a thread; false when it has none or it cannot be read now. */
bool sf_keep_thread_name(struct sf_walker *walker, int32_t pid, int32_t tid,
			 char ret[SF_KEEP_NAME]);

#endif
