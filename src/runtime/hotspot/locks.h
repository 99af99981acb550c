/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The lock for which a Java thread waits, and the lock's owner: a monitor at its entry, or a lock of
 * java.util.concurrent for which the thread is parked. Hostile input.
 */
#ifndef SF_RUNTIME_HOTSPOT_LOCKS_H
#define SF_RUNTIME_HOTSPOT_LOCKS_H

#include "runtime/hotspot/heap.h"
#include "runtime/hotspot/threads.h"
#include "target/lock_wait.h"

/*
 * `thread`: the JavaThread that waits; `threads`: all of them. `timed`: its wait in the kernel has a time-out. `hint`:
 * the JavaThread that had a monitor when this was last asked, or 0; it is looked at first. The collector may move
 * objects: what is read twice the same is true. False: it waits for nothing of that kind.
 */
bool sf_java_lock_wait(const struct sf_java_heap *heap, const struct sf_java_threads *threads, uint64_t thread, bool timed,
		       uint64_t *hint, struct sf_lock_wait *ret);

#endif
