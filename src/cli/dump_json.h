/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SF_CLI_DUMP_JSON_H
#define SF_CLI_DUMP_JSON_H

#include <stdio.h>

#include "session/dump.h"

/* A dump for programs; the format is in docs/dump.md. */
void sf_dump_print_json(const struct sf_dump *dump, FILE *out);

#endif
