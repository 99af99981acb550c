/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The commands. To add one: write cli/yourname.c, add it here, to `commands` in cli/main.c and to
 * cli/meson.build, and give tests/e2e a test. The manual page comes from its option table.
 */
#ifndef SF_CLI_COMMANDS_H
#define SF_CLI_COMMANDS_H

#include "base/error.h"
#include "base/options.h"

extern const struct sf_command sf_command_record, sf_command_dump, sf_command_report,
	sf_command_export, sf_command_doctor;

/* Exit codes of every command; a launched program's own status is passed on by `record`. */
enum { SF_EXIT_OK = 0, SF_EXIT_FAILED = 1, SF_EXIT_USAGE = 2 };

/*
 * Prints "stillframe: text" to stderr and returns `status`: the last line of a command that fails.
 */
int sf_cli_fail(int status, const struct sf_error *err);

/*
 * The start of each command: parses its options into `ret`. Returns -1 to go on, else the status to
 * exit with (help was printed, or the usage was wrong and has been explained).
 */
int sf_cli_parse(const struct sf_command *command, int argc, char **argv, void *ret, int *rest);

#endif
