/* SPDX-License-Identifier: Apache-2.0 */
/* The agent's part for .NET: agent/runtimes.h. */
#include "agent/coreclr/clr_rounds.h"
#include "agent/runtimes.h"
#include "frozen/runtime_list.h"

extern const struct sf_agent_runtime sf_agent_coreclr;

static bool begin(const struct sf_agent_options *options, struct sf_error *err)
{
	return sf_clr_rounds_begin(options->runtime_walks[SF_RUNTIME_CORECLR], err);
}

const struct sf_agent_runtime sf_agent_coreclr = { begin, sf_clr_rounds_stop, sf_clr_rounds_end };
