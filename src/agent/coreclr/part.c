/* SPDX-License-Identifier: Apache-2.0 */
/* The agent's part for .NET: agent/runtimes.h. */
#include "agent/coreclr/clr_events.h"
#include "agent/coreclr/clr_rounds.h"
#include "agent/coreclr/clr_shadow.h"
#include "agent/runtimes.h"

extern const struct sf_agent_runtime sf_agent_coreclr;

static bool begin(const struct sf_agent_options *options, struct sf_error *err)
{
	return sf_clr_rounds_begin(options->runtime_walks[SF_RUNTIME_CORECLR], err) && sf_clr_shadow_begin(options, err) &&
	       sf_clr_events_begin(options, err);
}

static void stop(void)
{
	sf_clr_rounds_stop();
	sf_clr_shadow_stop();
	sf_clr_events_stop();
}

static void end(void)
{
	sf_clr_rounds_end();
	sf_clr_shadow_end();
	sf_clr_events_end();
}

const struct sf_agent_runtime sf_agent_coreclr = { begin, stop, end };
