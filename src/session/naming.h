/* SPDX-License-Identifier: Apache-2.0 */
/* Names for the addresses of a recording: where recording meets symbols. */
#ifndef SF_SESSION_NAMING_H
#define SF_SESSION_NAMING_H

#include "recording/recording.h"
#include "symbols/apart.h"
#include "target/images.h"

/*
 * Names the addresses of one module that have no names yet, from the file behind `fd`, which is or
 * was at `path`. A file that cannot be read leaves them unnamed, and is no error.
 */
bool sf_session_name_module(struct sf_recording *recording, struct sf_apart *apart,
			    uint32_t module, int fd, const char *path, struct sf_error *err);

/*
 * Names every address that has no name yet. An image that cannot be read leaves its own unnamed.
 * `stop` becomes true: no more names are wanted; NULL: never does.
 */
bool sf_session_name_all(struct sf_recording *recording, struct sf_images *images,
			 const atomic_bool *stop, struct sf_error *err);

/* Notes in the recording that names are missing, where `apart` says so. */
bool sf_session_note_names(struct sf_recording *recording, const struct sf_apart *apart,
			   struct sf_error *err);

#endif
