/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The agent's calls of a runtime's own interfaces, in a process with that runtime. Each runtime in the
 * list (frozen/runtime_list.h) has one such part, or sf_agent_no_part.
 */
#ifndef SF_AGENT_RUNTIMES_H
#define SF_AGENT_RUNTIMES_H

#include <stdbool.h>

#include "agent/options.h"
#include "base/error.h"

/* A function that a part does not need is NULL. */
struct sf_agent_runtime {
	/* A profile begins: before the first sample. False: what the options demand cannot be had, and why. */
	bool (*begin)(const struct sf_agent_options *options, struct sf_error *err);
	/* The sampler has ended. The output still takes records. */
	void (*stop)(void);
	/* The profile has ended, and no signal handler runs any more. */
	void (*end)(void);
};

/* For all parts; `end` also after a failure, and without `stop`. */
bool sf_agent_runtimes_begin(const struct sf_agent_options *options, struct sf_error *err);
void sf_agent_runtimes_stop(void);
void sf_agent_runtimes_end(void);

#endif
