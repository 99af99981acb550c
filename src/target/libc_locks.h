/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The locks of glibc in the memory of a process: who has the one that a thread waits for.
 *
 * The kernel knows the address of one word of the lock. Which kind of lock the word belongs to is known from the
 * function of libc that waits. The other words of the lock must agree with that. The memory is hostile input: an owner
 * is a number that the caller checks.
 */
#ifndef SF_TARGET_LIBC_LOCKS_H
#define SF_TARGET_LIBC_LOCKS_H

#include "target/lock_wait.h"

/*
 * Whether a wait in this function of libc, by any of its names ("__GI___pthread_mutex_lock"), is for something that a
 * thread has.
 */
bool sf_libc_lock_function(const char *name);

/*
 * The lock for which a thread of the process waits, which is in this function and in the system call futex with these
 * arguments. The answer holds for the moment of the call, if the thread has not run since the arguments were read.
 * False: nothing that can be proved.
 */
bool sf_libc_lock_wait(int32_t pid, const char *function, const uint64_t args[6], struct sf_lock_wait *ret);

#endif
