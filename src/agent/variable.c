/* SPDX-License-Identifier: Apache-2.0 */
/* The variable STILLFRAME= of this process, as child processes inherit it. */
#include "agent/variable.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define VARIABLE "STILLFRAME="

static const char *inherited;

/*
 * Its place in environ stays, so that main()'s envp shows the same. Not by setenv(): bash has one
 * of its own, and later sets its variables from what environ was.
 */
static void put_into_environment(char *variable)
{
	for (char **at = environ; *at; at++) {
		if (strncmp(*at, VARIABLE, strlen(VARIABLE)) == 0)
			*at = variable;
	}
}

void sf_variable_keep(const char *text)
{
	char *copy;

	inherited = asprintf(&copy, VARIABLE "%s", text) >= 0 ? copy : NULL;
}

void sf_variable_sign(const char *text, struct sf_agent_options *options)
{
	char *signed_text;

	/* The text has this process's own id: this process added it before an exec. */
	options->again = options->first == getpid();
	if (options->first || options->connect || !options->start) {
		sf_variable_keep(text);
		return;
	}
	options->first = getpid();
	if (asprintf(&signed_text, VARIABLE "%s,first=%d", text, (int)getpid()) < 0)
		return;
	put_into_environment(signed_text);
	inherited = signed_text;
}

const char *sf_variable(void)
{
	return inherited;
}
