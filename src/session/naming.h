/* SPDX-License-Identifier: Apache-2.0 */
/* Names for the addresses of a recording: where recording meets symbols. */
#ifndef SF_SESSION_NAMING_H
#define SF_SESSION_NAMING_H

#include "recording/recording.h"
#include "target/images.h"

/*
 * Names the addresses of one module that have no names yet, from the file behind `fd`, which is or
 * was at `path`. A file that cannot be read leaves them unnamed, and is no error.
 */
bool sf_session_name_module(struct sf_recording *recording, uint32_t module, int fd,
			    const char *path, struct sf_error *err);

/* Names every address that has no name yet. An image that cannot be read leaves its own unnamed. */
bool sf_session_name_all(struct sf_recording *recording, struct sf_images *images,
			 struct sf_error *err);

#endif
