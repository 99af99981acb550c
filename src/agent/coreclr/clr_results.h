/* SPDX-License-Identifier: Apache-2.0 */
/* The results of the calls that walk stacks, as causes of losses. */
#ifndef SF_AGENT_CLR_RESULTS_H
#define SF_AGENT_CLR_RESULTS_H

#include <stdint.h>

#include "frozen/ends.h"

/* The cause of this HRESULT, a failure; SF_LOSS_CLR_OTHER for one that is not listed. Any thread. */
enum sf_loss sf_clr_loss(int32_t result);

#endif
