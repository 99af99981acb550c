/* SPDX-License-Identifier: Apache-2.0 */
/* Names for the addresses of a recording: where recording meets symbols. */
#ifndef SF_SESSION_NAMING_H
#define SF_SESSION_NAMING_H

#include "recording/profile/profile.h"
#include "session/name_round.h"

/* Names every address that has no name yet. An image that cannot be read leaves its own unnamed. */
bool sf_session_name_all(struct sf_recording *recording, struct sf_images *images, struct sf_name_sources *sources,
			 struct sf_error *err);

/*
 * Names a recording that was cut short while it is loaded, from files that still are what was
 * mapped then: those with the same build id. `lookup` has the limits of all its modules together, and
 * lives as long as the namer.
 */
struct sf_profile_namer sf_session_namer(struct sf_lookup *lookup);

#endif
