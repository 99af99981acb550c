/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The file that a stream goes to: its name, and whether this process has begun it before an exec.
 */
#ifndef SF_AGENT_OUTPUT_H
#define SF_AGENT_OUTPUT_H

#include <limits.h>
#include <stdbool.h>

#include "agent/options.h"
#include "base/error.h"

/* The absolute name that options->out means in this process; "" in ret when that fails. */
bool sf_output_name(const struct sf_agent_options *options, char ret[PATH_MAX],
		    struct sf_error *err);

/*
 * Whether this process has written the stream at this path: its id stands there, with a time at
 * which the process lived. (The environment does not show it: shells give their children their own.)
 */
bool sf_output_is_own(const char *path);

#endif
