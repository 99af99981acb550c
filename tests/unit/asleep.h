/* SPDX-License-Identifier: Apache-2.0 */
/*
 * For a test that interrupts a call of another process: that it is in the call is seen, not hoped for after some
 * milliseconds, in which a busy machine may not have let it come so far.
 */
#ifndef SF_TESTS_UNIT_ASLEEP_H
#define SF_TESTS_UNIT_ASLEEP_H

#include <stdio.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

/* The letter of its first thread's state, 'S' asleep; 0: it is gone. */
static inline char letter_of(pid_t pid)
{
	char path[32], text[512];
	const char *end = NULL;
	FILE *stat;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	stat = fopen(path, "re");
	if (!stat)
		return 0;
	if (fgets(text, sizeof(text), stat))
		end = strrchr(text, ')');
	fclose(stat);
	return end && end[1] ? end[2] : 0;
}

/* Returns, too, when it has ended. */
static inline void wait_until_asleep(pid_t pid)
{
	for (char letter = letter_of(pid); letter && !strchr("SZX", letter); letter = letter_of(pid))
		usleep(200);
}

#endif
