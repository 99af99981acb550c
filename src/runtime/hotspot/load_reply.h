/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The texts of HotSpot's attach protocol (HotSpot: os/posix/attachListener_posix.cpp, since 24
 * services/attachListener.cpp). Version 1: "1", a command and always three arguments, each with a
 * zero behind it, and each of up to 1024 bytes. Version 2: "2", the number of bytes that follow,
 * a command and any number of arguments. A reply is a number, a line end, and a text up to the end
 * of the connection; replies are hostile.
 */
#ifndef SF_RUNTIME_HOTSPOT_LOAD_REPLY_H
#define SF_RUNTIME_HOTSPOT_LOAD_REPLY_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"

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
