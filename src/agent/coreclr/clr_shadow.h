/* SPDX-License-Identifier: Apache-2.0 */
/*
 * --dotnet-walk shadow: the agent is the runtime's main profiler from the program's start on, and sets hooks that keep
 * a shadow stack for each thread (frozen/coreclr/shadow_stack.h). When the profile ends, the hooks stay in the code
 * that has them, and do nothing: the runtime takes no hooks back.
 */
#ifndef SF_AGENT_CORECLR_CLR_SHADOW_H
#define SF_AGENT_CORECLR_CLR_SHADOW_H

#include <stdbool.h>

#include "agent/options.h"
#include "base/error.h"

/* As struct sf_agent_runtime has them; without a walk by shadow stacks nothing happens. */
bool sf_clr_shadow_begin(const struct sf_agent_options *options, struct sf_error *err);
void sf_clr_shadow_stop(void);
void sf_clr_shadow_end(void);

#endif
