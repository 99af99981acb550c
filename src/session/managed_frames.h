/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes descriptions from runtimes to a recording: the managed frames of a trace by name, and the names
 * of threads.
 */
#ifndef SF_SESSION_MANAGED_FRAMES_H
#define SF_SESSION_MANAGED_FRAMES_H

#include "recording/recording.h"
#include "session/walker.h"

#define SF_SERVICE_NAME 256

/*
 * Describes, in the recording, those of the n_frames innermost frames of the walker's last trace that belong
 * to a runtime of `pid`. This must happen now: the process may remove the code later. The `address` of these
 * frames becomes the recording's number of the description.
 */
bool sf_managed_frames(struct sf_walker *walker, struct sf_recording *recording, int32_t pid,
		    uint32_t n_frames, struct sf_error *err);

/* The full name that a runtime has for a thread; false when it has none or it cannot be read now. */
bool sf_service_thread_name(struct sf_walker *walker, int32_t pid, int32_t tid,
			 char ret[SF_SERVICE_NAME]);

#endif
