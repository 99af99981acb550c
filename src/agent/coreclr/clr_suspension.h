/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The runtime's own frames of a suspension: where managed code polls for it, in methods of the class library. Stacks by
 * DoStackSnapshot begin with them, since the suspension stops threads there.
 */
#ifndef SF_AGENT_CLR_SUSPENSION_H
#define SF_AGENT_CLR_SUSPENSION_H

#include <stdbool.h>
#include <stdint.h>

#include "agent/coreclr/clr_info.h"

/*
 * Whether this method serves a suspension only. Its name is read by the runtime's metadata functions, once for each method.
 * On one thread, while the runtime is not suspended by it.
 */
bool sf_clr_serves_suspension(struct sf_clr_info *info, uint64_t function);

#endif
