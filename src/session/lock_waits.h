/* SPDX-License-Identifier: Apache-2.0 */
/* Who waits for whom in a dump, and who waits in a circle. */
#ifndef SF_SESSION_LOCK_WAITS_H
#define SF_SESSION_LOCK_WAITS_H

#include "session/dump.h"

/*
 * Fills `lock` and `owner` of the dump's threads, and its circles. The threads have their frames with names. `runtimes` NULL: there
 * are none. What cannot be proved is left out.
 */
void sf_lock_waits_find(struct sf_dump *dump, struct sf_process_runtimes *runtimes);

#endif
