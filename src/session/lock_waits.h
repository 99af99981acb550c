/* SPDX-License-Identifier: Apache-2.0 */
/* Owners of the locks for which the threads of a dump wait, and circles of such waits. */
#ifndef SF_SESSION_LOCK_WAITS_H
#define SF_SESSION_LOCK_WAITS_H

#include "session/dump.h"

/*
 * Fills `lock` and `owner` of the dump's threads, and its circles. The threads have their frames with names. `runtimes`
 * NULL: there are none. An owner that cannot be proved is left out.
 */
void sf_lock_waits_find(struct sf_dump *dump, struct sf_process_runtimes *runtimes);

#endif
