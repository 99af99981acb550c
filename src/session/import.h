/* SPDX-License-Identifier: Apache-2.0 */
/* Stream files in the place of recordings: what an agent wrote with no stillframe around. */
#ifndef SF_SESSION_IMPORT_H
#define SF_SESSION_IMPORT_H

#include <stdbool.h>

#include "base/error.h"
#include "recording/profile/profile.h"

/*
 * Makes a finished, named recording at `output` (as sf_recording_create: an empty file or a
 * recording is replaced) from the stream at `stream`. Where the stream breaks off, or is damaged
 * further on, the recording has what is whole, and a note that says so. False when nothing could
 * be made of it. Not signal-safe.
 */
bool sf_import(const char *stream, const char *output, struct sf_error *err);

/*
 * Imports the stream behind `fd`, an open file that stays the caller's, into a temporary file and
 * loads that; nothing is left behind. `name` is for messages: whatever stands there by now is not
 * opened. The profile is the caller's, for sf_profile_destroy.
 */
bool sf_import_load(int fd, const char *name, bool split_kinds, struct sf_profile **ret, struct sf_error *err);

#endif
