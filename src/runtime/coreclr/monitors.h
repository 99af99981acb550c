/* SPDX-License-Identifier: Apache-2.0 */
/* Which monitor a managed thread waits to enter, and which thread has it. Ordinary code; hostile input. */
#ifndef SF_RUNTIME_CORECLR_MONITORS_H
#define SF_RUNTIME_CORECLR_MONITORS_H

#include "runtime/coreclr/threads.h"
#include "target/lock_wait.h"

/*
 * `major`: the runtime's version. `thread`: the Thread that waits; `threads`: all of them. A reading counts as
 * objects.h says. False: the thread waits for no monitor, or the runtime's records of that are not as they are known to
 * be.
 */
bool sf_clr_lock_wait(const struct sf_clr_naming *naming, unsigned major, const struct sf_clr_threads *threads, uint64_t thread,
		      struct sf_lock_wait *ret);

#endif
