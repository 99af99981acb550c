/* SPDX-License-Identifier: Apache-2.0 */
#include "os/linux/proc.h"

#include <fcntl.h>
#include <stdio.h>
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
