/* SPDX-License-Identifier: Apache-2.0 */
/* Code that all commands share: parsing of options, and the last line of a command that fails. */
#include <stdio.h>
#include <string.h>

#include "cli/commands.h"

int sf_cli_fail(int status, const struct sf_error *err)
{
	fflush(stdout);
	fprintf(stderr, "stillframe: %s\n", err->text);
	return status;
}

int sf_cli_parse(const struct sf_command *command, int argc, char **argv, void *ret, int *rest)
{
	struct sf_error err = { 0 };

	for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++) {
		if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0) {
			sf_options_help(command, stdout);
			return SF_EXIT_OK;
		}
		if (command->takes_command && argv[i][0] != '-')
			break;
	}
	if (sf_options_parse(command, argc, argv, ret, rest, &err))
		return -1;
	sf_fail_hint(&err, "`stillframe %s --help` lists what it takes.", command->name);
	return sf_cli_fail(SF_EXIT_USAGE, &err);
}
