/* SPDX-License-Identifier: Apache-2.0 */
/* What tests do in a temporary folder of theirs. Include cmocka.h first. */
#ifndef SF_TESTS_FOLDER_H
#define SF_TESTS_FOLDER_H

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

static inline void folder_write(const char *folder, const char *name, const char *text)
{
	char path[256];
	FILE *file;

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	file = fopen(path, "we");
	assert_non_null(file);
	fputs(text, file);
	assert_int_equal(fclose(file), 0);
}

/* Runs a shell command in it; what the command prints is in the file `log`. */
static inline bool folder_run(const char *folder, const char *command)
{
	char line[1024];

	snprintf(line, sizeof(line), "cd %s && { %s; } >>log 2>&1", folder, command);
	return system(line) == 0;
}

/* With all that is in it. 0, as cmocka wants it of a tear-down, or not. */
static inline int folder_remove(const char *folder)
{
	char line[256];

	snprintf(line, sizeof(line), "rm -rf '%s'", folder);
	return system(line);
}

#endif
