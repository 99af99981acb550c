/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The walk of a held thread by its shadow stack: our own walk has the native frames above the innermost managed one, and the
 * shadow stack has the managed frames. A thread without one, or whose shadow stack is empty, is walked as always.
 */
#ifndef SF_FROZEN_CORECLR_SHADOW_WALK_H
#define SF_FROZEN_CORECLR_SHADOW_WALK_H

#include "frozen/signal/handler.h"

sf_held_walk_fn sf_shadow_walk;

#endif
