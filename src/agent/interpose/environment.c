/* SPDX-License-Identifier: Apache-2.0 */
/* The environment of a program that the agent would be loaded into in vain. Signal-safe. */
#include "agent/interpose/environment.h"

#include <string.h>

#define OPTIONS "STILLFRAME="
#define PRELOAD "LD_PRELOAD="
#define LIBRARY "libstillframe-agent.so"
#define SEPARATORS " :" /* ld.so(8) */

static bool starts_with(const char *text, const char *start)
{
	return strncmp(text, start, strlen(start)) == 0;
}

/* Whether the path at `at` names the agent's library. */
static bool is_library(const char *at, size_t size)
{
	const size_t name = sizeof(LIBRARY) - 1;

	return size >= name && memcmp(at + size - name, LIBRARY, name) == 0 && (size == name || at[size - name - 1] == '/');
}

/* Writes LD_PRELOAD without the library; false: nothing is left. */
static bool copy_preload(const char *from, char *to)
{
	size_t used = sizeof(PRELOAD) - 1;
	const char *at = from + used;

	memcpy(to, PRELOAD, used);
	while (*at) {
		const size_t size = strcspn(at, SEPARATORS);

		if (size && !is_library(at, size)) {
			if (to[used - 1] != '=')
				to[used++] = ':';
			memcpy(to + used, at, size);
			used += size;
		}
		at += size + (at[size] != 0);
	}
	to[used] = 0;
	return to[used - 1] != '=';
}

bool sf_environment_measure(char *const envp[], struct sf_environment_size *ret)
{
	*ret = (struct sf_environment_size){ 1, 1 };
	for (; envp && envp[ret->n - 1]; ret->n++) {
		if (starts_with(envp[ret->n - 1], PRELOAD) && strstr(envp[ret->n - 1], LIBRARY))
			ret->n_bytes = strlen(envp[ret->n - 1]) + 1;
	}
	return ret->n_bytes > 1;
}

void sf_environment_copy(char *const envp[], char **ret, char *text)
{
	for (; *envp; envp++) {
		char *word = *envp;

		if (starts_with(word, OPTIONS))
			continue;
		if (starts_with(word, PRELOAD) && strstr(word, LIBRARY)) {
			if (!copy_preload(word, text))
				continue;
			word = text;
		}
		*ret++ = word;
	}
	*ret = NULL;
}
