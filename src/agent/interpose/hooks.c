/* SPDX-License-Identifier: Apache-2.0 */
/* The one pointer through which the interposers reach the rest of the agent. */
#include "agent/interpose/interpose.h"

const struct sf_interpose_hooks *_Atomic sf_interpose_hooks;
