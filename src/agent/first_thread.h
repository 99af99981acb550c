/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The program's first thread ends, and the process is to live as long as it would without the agent's threads. libc's
 * pthread_exit() ends the process, with all that exit() does, if the calling thread is the last one. So the agent's
 * threads end first if it is the program's last one. If it is not, the stand-in watches over the threads that are left:
 * a thread of the agent with the program's descriptors, which becomes the process's last one when they have ended.
 */
#ifndef SF_AGENT_FIRST_THREAD_H
#define SF_AGENT_FIRST_THREAD_H

/*
 * By the first thread, which ends next and is in no handler, while a profile runs or the agent listens. Not in the
 * child of a vfork.
 */
void sf_first_thread_ends(void);

#endif
