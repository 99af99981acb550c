/* SPDX-License-Identifier: Apache-2.0 */
/* The recording that a user means who names none. */
#ifndef SF_CLI_NEWEST_H
#define SF_CLI_NEWEST_H

#include <limits.h>

#include "base/error.h"

/*
 * The recording or stream (*.sfr, *.sfs) of the current folder that was written last. Only regular files count; a
 * symbolic link does not. False and a message where there is none.
 */
bool sf_newest_recording(char ret[NAME_MAX + 1], struct sf_error *err);

#endif
