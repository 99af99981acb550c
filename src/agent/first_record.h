/* SPDX-License-Identifier: Apache-2.0 */
/* The first record of a stream: what the process is, and how it is sampled. */
#ifndef SF_AGENT_FIRST_RECORD_H
#define SF_AGENT_FIRST_RECORD_H

#include <stdbool.h>
#include <stdint.h>

#include "agent/options.h"
#include "base/error.h"

/* Writes it into the outbox. `walk`: enum sf_mode. False: the outbox has no room. */
bool sf_agent_write_process(const struct sf_agent_options *options, uint16_t walk, struct sf_error *err);

#endif
