/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Has a running .NET process load the agent, by the command AttachProfiler of the runtime's diagnostics socket (runtime:
 * src/native/eventpipe/ds-*.c). The agent begins, and declines to be a
 * profiler unless a part of it needs one (agent/coreclr/clr_profiler.h).
 *
 *   load_socket.c    finds the socket; one request and its reply, and their bytes (hostile)
 *
 * What is the same for all runtimes is in runtime/load.
 */
#ifndef SF_RUNTIME_CORECLR_LOAD_H
#define SF_RUNTIME_CORECLR_LOAD_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

/* Whether a .NET runtime is in this process: it listens, or it has the runtime's library. */
bool sf_clr_is_in(int32_t pid);

/* Whether an agent might be loaded; if not, why, and what to do. Nothing is done to the process. */
bool sf_clr_loadable(int32_t pid, struct sf_error *err);

/* Loads `library` (an absolute path of ours), which begins with `options`. */
bool sf_clr_load(int32_t pid, const char *library, const char *options, struct sf_error *err);

/*
 * In a process with the agent in it: the runtime takes the agent, the mapped library whose name begins so, as a profiler
 * that stays. Called on a thread of the agent; the runtime calls the agent on another thread before this returns. The loader
 * finds a library that is mapped by its path, also where the file is gone.
 */
bool sf_clr_attach_self(const char *name, struct sf_error *err);

/*
 * In a process with the agent in it: ends a session of EventPipe. The runtime does that on a thread of its own. It runs
 * managed code for it, on the thread that ends the session, and aborts the process where that is a thread of the agent.
 */
void sf_clr_stop_own_session(uint64_t session);

#endif
