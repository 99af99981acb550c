/* SPDX-License-Identifier: Apache-2.0 */
/* Opens and reads small files of /proc. */
#include "os/linux/proc.h"

#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int sf_proc_open(int32_t pid, int32_t tid, const char *name)
{
	char path[96];

	if (tid > 0)
		snprintf(path, sizeof(path), "/proc/%d/task/%d/%s", pid, tid, name);
	else
		snprintf(path, sizeof(path), "/proc/%d/%s", pid, name);
	return open(path, O_RDONLY | O_CLOEXEC);
}

bool sf_proc_read(int32_t pid, int32_t tid, const char *name, char *ret, size_t size)
{
	int fd = sf_proc_open(pid, tid, name);
	size_t used = 0;
	ssize_t n = -1;

	if (fd < 0)
		return false;
	while (used < size - 1 && (n = read(fd, ret + used, size - 1 - used)) > 0)
		used += (size_t)n;
	close(fd);
	ret[used] = 0;
	return n >= 0;
}

uint64_t sf_proc_stat_field(const char *p, int number)
{
	for (int field = 2; p && field < number; field++)
		p = strchr(p + 1, ' ');
	return p ? strtoull(p + 1, NULL, 10) : 0;
}

void sf_proc_scan(const char *path, const char *format, ...)
{
	FILE *file = fopen(path, "re");
	va_list values;

	if (!file)
		return;
	va_start(values, format);
	(void)!vfscanf(file, format, values);
	va_end(values);
	fclose(file);
}
