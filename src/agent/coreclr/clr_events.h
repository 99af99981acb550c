/* SPDX-License-Identifier: Apache-2.0 */
/* The events of .NET's runtime in place of time: the part of the agent that has the runtime report them (agent/runtimes.h). */
#ifndef SF_AGENT_CLR_EVENTS_H
#define SF_AGENT_CLR_EVENTS_H

#include "agent/options.h"
#include "base/error.h"

bool sf_clr_events_begin(const struct sf_agent_options *options, struct sf_error *err);
void sf_clr_events_stop(void);
void sf_clr_events_end(void);

#endif
