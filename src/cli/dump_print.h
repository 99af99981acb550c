/* SPDX-License-Identifier: Apache-2.0 */
/* A dump, written for people and for programs. */
#ifndef SF_CLI_DUMP_PRINT_H
#define SF_CLI_DUMP_PRINT_H

#include <stdio.h>

#include "session/dump.h"

void sf_dump_print(const struct sf_dump *dump, bool times, FILE *out);
void sf_dump_print_json(const struct sf_dump *dump, FILE *out); /* docs/dump.md */

#endif
