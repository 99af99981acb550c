/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The functions of lifecycle.c that other entries into a process use. Ordinary code, one caller at a
 * time.
 */
#ifndef SF_AGENT_LIFECYCLE_H
#define SF_AGENT_LIFECYCLE_H

#include <stdbool.h>

#include "base/error.h"

/*
 * Does what a text of agent/options.h says, as if it were the value of STILLFRAME, but for what this
 * process starts. A profile that is under way already goes on.
 */
bool sf_lifecycle_obey(const char *text, struct sf_error *err);

/* Prints one line to the standard error: always, or only with STILLFRAME_VERBOSE. */
void sf_lifecycle_complain(const struct sf_error *err, bool always);

#endif
