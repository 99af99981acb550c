/* SPDX-License-Identifier: Apache-2.0 */
/* Names for the addresses of a recording: where recording meets symbols. */
#ifndef SF_SESSION_NAMING_H
#define SF_SESSION_NAMING_H

#include "recording/recording.h"
#include "target/images.h"

/* Names every address that has no name yet. An image that cannot be read leaves its own unnamed. */
bool sf_session_name_all(struct sf_recording *recording, struct sf_images *images,
			 struct sf_error *err);

#endif
