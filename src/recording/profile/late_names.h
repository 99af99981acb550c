/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names for the functions of a recording that was cut short, put into the profile while it is
 * loaded. The file stays as it is. Private to src/recording; the caller's side is in profile.h.
 */
#ifndef SF_RECORDING_PROFILE_LATE_NAMES_H
#define SF_RECORDING_PROFILE_LATE_NAMES_H

#include "recording/profile/loader.h"

/* Has the native frames that have no names named, module by module. Their rows must have been read. */
bool sf_loader_name_frames(struct sf_loader *loader, const struct sf_profile_namer *namer,
			   struct sf_error *err);

#endif
