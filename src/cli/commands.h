/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The commands. To add one: its file in cli/, its name in SF_COMMANDS, cli/meson.build, a test in tests/e2e, its row in
 * README.md. Its help and its manual page come from its struct sf_command.
 */
#ifndef SF_CLI_COMMANDS_H
#define SF_CLI_COMMANDS_H

#include "base/error.h"
#include "base/options.h"

/* X(name): the commands, in the order in which help lists them. */
#define SF_COMMANDS(X) X(record) X(dump) X(report) X(export) X(doctor)

#define X(name) extern const struct sf_command sf_command_##name;
SF_COMMANDS(X)
#undef X

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
