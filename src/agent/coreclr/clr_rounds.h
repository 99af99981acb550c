/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Walks of .NET's threads by the runtime itself (--dotnet-walk=snapshot, both), in rounds of the sampler (sampler.h). A round
 * suspends the runtime, walks each managed thread that ran since the round before, and resumes the runtime. All that takes
 * longer comes afterwards: names, keys, records. The rules for each step are those of .NET's documentation:
 *
 * - The profiler holds no lock during a walk, and the callback copies numbers (clr_stack.h).
 *
 * - The agent holds no thread while the runtime suspends its threads (sampler.h).
 *
 * - A thread that ends waits until the walks that are under way have ended, for a tenth of a second at most.
 *
 * - A call that fails is not repeated. Its result is the cause of a loss of its own.
 */
#ifndef SF_AGENT_CLR_ROUNDS_H
#define SF_AGENT_CLR_ROUNDS_H

#include <stdbool.h>

#include "agent/options.h"
#include "base/error.h"

/* As struct sf_agent_runtime has them. `walk`: enum sf_agent_runtime_walk; without walks by the runtime nothing happens. */
bool sf_clr_rounds_begin(int walk, struct sf_error *err);
void sf_clr_rounds_stop(void);
void sf_clr_rounds_end(void);

#endif
