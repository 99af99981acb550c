/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Loads a native agent into a running Java virtual machine by the JVM's own attach mechanism (JDK:
 * sun.tools.attach.VirtualMachineImpl, HotSpot: services/attachListener.cpp,
 * os/posix/attachListener_posix.cpp). The mechanism uses a socket in the JVM's /tmp. The JVM's signal
 * thread opens the socket when SIGQUIT arrives and a trigger file exists. SIGQUIT is sent in no other
 * case, because it would print a thread dump on the program's output, or end the program. SIGQUIT is
 * sent by a pidfd, so that it never reaches a later process with the same id.
 *
 *   load_target.c    what must be known of the machine before anything is done to it; the trigger, one request and its reply
 *
 * What is the same for all runtimes is in runtime/load.
 */
#ifndef SF_RUNTIME_HOTSPOT_LOAD_H
#define SF_RUNTIME_HOTSPOT_LOAD_H

#include <stdbool.h>
#include <stddef.h>
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

/*
 * The texts of HotSpot's attach protocol (HotSpot: os/posix/attachListener_posix.cpp, since 24
 * services/attachListener.cpp). Version 1: "1", a command and always three arguments, each with a
 * zero behind it, and each of up to 1024 bytes. Version 2: "2", the number of bytes that follow,
 * a command and any number of arguments. A reply is a number, a line end, and a text up to the end
 * of the connection; replies are hostile.
 */
#define SF_JVM_LOAD_ARGUMENTS 3
#define SF_JVM_LOAD_MAX_V1 1024
#define SF_JVM_LOAD_MAX_REQUEST 16384

/* The bytes of a request, 0 when there is no room; `arguments` are three, "" for none. */
size_t sf_jvm_load_request(unsigned version, const char *command,
		       const char *const arguments[SF_JVM_LOAD_ARGUMENTS], char *ret, size_t size);

/* Whether version 1 has room for these. */
bool sf_jvm_load_fits_v1(const char *const arguments[SF_JVM_LOAD_ARGUMENTS]);

/* Whether the reply to "getversion" says that version 2 is understood. */
bool sf_jvm_load_knows_v2(const char *reply, size_t size);

/*
 * Whether the reply to "load" says that the agent was loaded and accepted its options. If not, err
 * contains the reply as one line, cut to size, without characters that a terminal would interpret.
 */
bool sf_jvm_load_judge(const char *reply, size_t size, int pid, struct sf_error *err);

#endif
