/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the agent does with a runtime beyond walking it: calling the runtime's own interfaces, in a process
 * that has it. Each runtime in the list (runtime/list.h) has one of these parts, or sf_agent_no_part.
 */
#ifndef SF_AGENT_RUNTIMES_H
#define SF_AGENT_RUNTIMES_H

#include <stdbool.h>

#include "agent/options.h"
#include "base/error.h"

struct sf_agent_runtime {
	/* A profile begins: before the first sample. False: what the options demand cannot be had, and why. */
	bool (*begin)(const struct sf_agent_options *options, struct sf_error *err);
	/* It is over: no handler is under way any more. */
	void (*end)(void);
};

/* For all parts; `end` also after a failure. */
bool sf_agent_runtimes_begin(const struct sf_agent_options *options, struct sf_error *err);
void sf_agent_runtimes_end(void);

#endif
