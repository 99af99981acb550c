/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The stream of a profile: the name of its file, its first record, and whether this process has begun the file before an exec.
 */
#ifndef SF_AGENT_OUTPUT_H
#define SF_AGENT_OUTPUT_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

#include "agent/options.h"
#include "base/error.h"

/* The absolute name that options->out means in this process; "" in ret when that fails. */
bool sf_output_name(const struct sf_agent_options *options, char ret[PATH_MAX],
		    struct sf_error *err);

/*
 * Writes the first record into the outbox, before a thread can be sampled: what the process is, and how it is sampled. `walk`:
 * enum sf_mode. False: the outbox has no room.
 */
bool sf_output_write_process(const struct sf_agent_options *options, uint16_t walk, struct sf_error *err);

/*
 * Whether this process has written the stream at this path: its id stands there, with a time at
 * which the process lived. (The environment does not show it: shells give their children their own.)
 */
bool sf_output_is_own(const char *path);

#endif
