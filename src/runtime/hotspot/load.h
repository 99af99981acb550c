/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Loads a native agent into a running Java virtual machine by the JVM's own attach mechanism (JDK:
 * sun.tools.attach.VirtualMachineImpl, HotSpot: services/attachListener.cpp,
 * os/posix/attachListener_posix.cpp). The mechanism uses a socket in the JVM's /tmp. The JVM's signal
 * thread opens the socket when SIGQUIT arrives and a trigger file exists. SIGQUIT is sent in no other
 * case, because it would print a thread dump on the program's output, or end the program. SIGQUIT is
 * sent by a pidfd, so that it never reaches a later process with the same id.
 *
 *   load_target.c    what must be known of the machine before anything is done to it
 *   load_socket.c    the trigger, one request and its reply
 *   load_reply.c     the text of requests and replies (hostile)
 *
 * What is the same for all runtimes is in runtime/load.
 */
#ifndef SF_RUNTIME_HOTSPOT_LOAD_H
#define SF_RUNTIME_HOTSPOT_LOAD_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

/* Whether a HotSpot virtual machine is in this process, as far as its map can be read. */
bool sf_hotspot_is_in(int32_t pid);

/* Whether an agent might be loaded; if not, why, and what to do. Nothing is done to the process. */
bool sf_hotspot_loadable(int32_t pid, struct sf_error *err);

/*
 * Loads `library` (an absolute path of ours) and calls its Agent_OnAttach with `options`. Where the
 * target does not see this file it gets a copy in its /tmp, which is removed when it is loaded.
 */
bool sf_hotspot_load(int32_t pid, const char *library, const char *options, struct sf_error *err);

#endif
