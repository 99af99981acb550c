/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SF_AGENT_LIBC_PROGRAM_LOADER_H
#define SF_AGENT_LIBC_PROGRAM_LOADER_H

#include <stdbool.h>

/*
 * Whether the program is one of the C library musl, whose loader ends a program into which it cannot load the agent, or a
 * script that such a program interprets. A name without a slash is looked for along PATH. False also where there is no such
 * file, or it cannot be read. Signal-safe where the name has a slash, also in the child of a vfork.
 */
bool sf_program_has_musl(const char *name);

#endif
