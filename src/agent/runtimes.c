/* SPDX-License-Identifier: Apache-2.0 */
/* The agent's parts for runtimes, in the order of the list. */
#include "agent/runtimes.h"

#include <stddef.h>

#include "frozen/runtime_list.h"

extern const struct sf_agent_runtime sf_agent_no_part;

const struct sf_agent_runtime sf_agent_no_part = { NULL, NULL, NULL };

#define X(name, driver, part) extern const struct sf_agent_runtime part;
SF_RUNTIMES(X)
#undef X

static const struct sf_agent_runtime *const parts[] = {
#define X(name, driver, part) &part,
	SF_RUNTIMES(X)
#undef X
};

bool sf_agent_runtimes_begin(const struct sf_agent_options *options, struct sf_error *err)
{
	bool ok = true;

	for (size_t i = 0; ok && i < SF_N_RUNTIMES; i++)
		ok = !parts[i]->begin || parts[i]->begin(options, err);
	return ok;
}

void sf_agent_runtimes_stop(void)
{
	for (size_t i = 0; i < SF_N_RUNTIMES; i++) {
		if (parts[i]->stop)
			parts[i]->stop();
	}
}

void sf_agent_runtimes_end(void)
{
	for (size_t i = 0; i < SF_N_RUNTIMES; i++) {
		if (parts[i]->end)
			parts[i]->end();
	}
}
