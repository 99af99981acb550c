/* SPDX-License-Identifier: Apache-2.0 */
/* The flags of a Java virtual machine (-XX), in the table that it exports. Hostile input. */
#ifndef SF_RUNTIME_HOTSPOT_FLAGS_H
#define SF_RUNTIME_HOTSPOT_FLAGS_H

#include "frozen/hotspot/hotspot.h"
#include "os/process.h"

/* A flag that is true or false. */
struct sf_java_flag {
	uint64_t name;           /* the address of its name */
	uint64_t address;        /* of its value, a byte */
	uint8_t  value;
	bool     is_default;     /* it was not set; false also where that is not known */
};

/* The value of a flag, such as "DebugNonSafepoints"; -1: it has none of this name. */
int sf_java_flag(const struct sf_hotspot *hotspot, const struct sf_reader *memory, const char *name);

/*
 * Whether a flag has been on since the start: who started the virtual machine said so. A tool, also another stillframe, writes
 * to the byte at any later time, and the flag still counts as one that was not set.
 */
bool sf_java_flag_was_given(const struct sf_hotspot *hotspot, const struct sf_reader *memory, const char *name);

/*
 * Asks a Java virtual machine for debug information at every instruction of the code that it compiles from now on.
 *
 * Its compilers look at the flag DebugNonSafepoints when they begin with a method (HotSpot: code/debugInfoRec.cpp). The flag
 * is a byte of libjvm's data, and this writes 1 to it. A flag that the user has set stays as it is. The destination
 * comes from the process, so it is written to only if it is in writable memory that no other process shares.
 */
struct sf_java_debug_info {
	struct sf_java_flag flag;        /* address 0: it is as it was found */
	struct sf_program program;       /* in which it was set */
	int32_t pid;
};

/*
 * `fd`: the libjvm that the process has mapped with this bias, whether its virtual machine has started or not. True: it is
 * set, or it is to stay as it is; false: its tables cannot be read yet.
 */
bool sf_java_debug_info_begin(struct sf_java_debug_info *info, int32_t pid, const struct sf_reader *memory, int fd,
			      uint64_t bias);

/* As it was, if the same program is there still. */
void sf_java_debug_info_end(struct sf_java_debug_info *info);

#endif
