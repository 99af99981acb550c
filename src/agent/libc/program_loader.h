/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SF_AGENT_LIBC_PROGRAM_LOADER_H
#define SF_AGENT_LIBC_PROGRAM_LOADER_H

#include <stdbool.h>

/*
 * Whether the file at `path` is a program of the C library musl, whose loader ends a program into which it cannot load the
 * agent. False also where the file cannot be read. Signal-safe, also in the child of a vfork.
 */
bool sf_program_has_musl(const char *path);

#endif
