/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stepping aside: the agent's threads end before a system call of the program that needs a process of one thread, or
 * all threads alike, and come back after it. The profile goes on: its accounts, its ring and its channel stay. New
 * threads have the rights and the namespaces of the thread that made the call.
 */
#ifndef SF_AGENT_ASIDE_H
#define SF_AGENT_ASIDE_H

#include <stdbool.h>

/*
 * By the thread that is about to make the call. True: sf_aside_end is due after it, by the same thread. False: nothing
 * was done, as the agent has no thread or one of them cannot end now. Not signal-safe, and not in the child of a vfork.
 */
bool sf_aside_begin(void);
void sf_aside_end(void);

/* The threads end for good, as none could be made after the call. `why`: for the user; NULL: without a message. */
void sf_aside_for_good(const char *why);

/*
 * By the program's first thread, which ends next and is in no handler, while a profile runs or the agent listens. Not in the child
 * of a vfork. The process is to live as long as it would without the agent's threads. libc's pthread_exit() ends the process, with
 * all that exit() does, if the calling thread is the last one. So the agent's threads end first if it is the program's last one.
 * If it is not, the stand-in watches over the threads that are left: a thread of the agent with the program's descriptors, which
 * becomes the process's last one when they have ended.
 */
void sf_first_thread_ends(void);

#endif
