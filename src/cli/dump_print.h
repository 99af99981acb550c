/* SPDX-License-Identifier: Apache-2.0 */
/* Prints a dump: as text for people, and as JSON for programs. */
#ifndef SF_CLI_DUMP_PRINT_H
#define SF_CLI_DUMP_PRINT_H

#include <stdio.h>

#include "session/dump.h"

struct sf_dump_look {
	bool times;          /* how long threads were held */
	bool split_kinds;     /* how managed frames ran */
};

void sf_dump_print(const struct sf_dump *dump, const struct sf_dump_look *look, FILE *out);
void sf_dump_print_json(const struct sf_dump *dump, FILE *out); /* docs/dump.md */

#endif
