/* SPDX-License-Identifier: Apache-2.0 */
/* Opens and reads small files of /proc. */
#include "os/linux/proc.h"

#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/lines.h"

int sf_proc_open(int32_t pid, int32_t tid, const char *name)
{
	char path[96];

	if (tid > 0)
		snprintf(path, sizeof(path), "/proc/%d/task/%d/%s", pid, tid, name);
	else
		snprintf(path, sizeof(path), "/proc/%d/%s", pid, name);
	return open(path, O_RDONLY | O_CLOEXEC);
}

/* As much as there is room for, and how much; -1 and errno. */
static ssize_t read_all(int fd, char *ret, size_t size)
{
	size_t used = 0;
	ssize_t n = -1;

	while (used < size - 1 && (n = read(fd, ret + used, size - 1 - used)) > 0)
		used += (size_t)n;
	ret[used] = 0;
	return n < 0 ? -1 : (ssize_t)used;
}

ssize_t sf_proc_bytes(int32_t pid, int32_t tid, const char *name, char *ret, size_t size)
{
	SF_CLEANUP(close) int fd = sf_proc_open(pid, tid, name);

	return fd < 0 ? -1 : read_all(fd, ret, size);
}

bool sf_proc_read(int32_t pid, int32_t tid, const char *name, char *ret, size_t size)
{
	return sf_proc_bytes(pid, tid, name, ret, size) >= 0;
}

static const char *behind_name(const char *text)
{
	const char *p = strrchr(text, ')');

	return p && p[1] && p[2] ? p + 2 : NULL;
}

const char *sf_proc_stat(int32_t pid, int32_t tid, char text[SF_PROC_STAT])
{
	return sf_proc_read(pid, tid, "stat", text, SF_PROC_STAT) ? behind_name(text) : NULL;
}

char sf_proc_letter(int32_t pid, int32_t tid)
{
	char text[SF_PROC_STAT];
	const char *stat = sf_proc_stat(pid, tid, text);

	return stat ? *stat : 0;
}

const char *sf_proc_stat_of(int fd, char text[SF_PROC_STAT])
{
	ssize_t n = pread(fd, text, SF_PROC_STAT - 1, 0);

	if (n <= 0)
		return NULL;
	text[n] = 0;
	return behind_name(text);
}

uint64_t sf_proc_stat_field(const char *stat, int number)
{
	const char *p = stat;

	for (int field = 3; p && field < number; field++) {
		p = strchr(p, ' ');
		p = p ? p + 1 : NULL;
	}
	return p ? strtoull(p, NULL, 10) : 0;
}

bool sf_proc_status(int32_t pid, int32_t tid, const char *key, char *ret, size_t size)
{
	char text[4096];
	const size_t key_size = strlen(key);

	if (!sf_proc_read(pid, tid, "status", text, sizeof(text)))
		return false;
	for (const char *line = text; line; line = strchr(line, '\n')) {
		line += *line == '\n';
		if (strncmp(line, key, key_size) != 0)
			continue;
		line += key_size;
		line += strspn(line, " \t");
		return snprintf(ret, size, "%.*s", (int)strcspn(line, "\n"), line) >= 0;
	}
	return false;
}

void sf_proc_scan(const char *path, const char *format, ...)
{
	SF_CLEANUP(close) int fd = open(path, O_RDONLY | O_CLOEXEC);
	char text[1024];
	va_list values;

	if (fd < 0 || read_all(fd, text, sizeof(text)) < 0)
		return;
	va_start(values, format);
	(void)!vsscanf(text, format, values);
	va_end(values);
}

bool sf_proc_lines(const char *path, bool (*fn)(const char *line, void *arg), void *arg)
{
	SF_CLEANUP(close) int fd = open(path, O_RDONLY | O_CLOEXEC);
	SF_CLEANUP(lines) struct sf_lines lines = { .fd = fd };
	bool fine = fd >= 0;
	const char *line;

	while (fine && (line = sf_lines_next(&lines)))
		fine = fn(line, arg);
	return fine;
}
