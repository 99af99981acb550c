/* SPDX-License-Identifier: Apache-2.0 */
/* Looks for a program as libc does, and at the start of its file for the path of its loader. */
#include "agent/libc/program_loader.h"

#include <elf.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/musl.h"
#include "frozen/raw.h"

#define MAX_START 1024 /* linkers put the path behind the program headers */

static bool has_musl(const char *path)
{
	static const char musl[] = "/" SF_MUSL_LOADER;
	const int flags = O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY;
	char start[MAX_START];
	long fd = sf_raw4(SYS_openat, AT_FDCWD, path, flags, 0), n;

	if (fd < 0)
		return false;
	n = sf_raw3(SYS_read, fd, start, sizeof(start));
	sf_raw1(SYS_close, fd);
	return n > SELFMAG && memcmp(start, ELFMAG, SELFMAG) == 0 && memmem(start, (size_t)n, musl, strlen(musl));
}

/* The file in the first folder of PATH that has one to execute, as libc takes it. False: none has. */
static bool find(const char *name, char ret[PATH_MAX])
{
	const size_t name_size = strlen(name) + 1;
	size_t size;

	for (const char *folder = getenv("PATH"); folder; folder = folder[size] ? folder + size + 1 : NULL) {
		size = strcspn(folder, ":");
		if (!size || size + 1 + name_size > PATH_MAX)
			continue;
		memcpy(ret, folder, size);
		ret[size] = '/';
		memcpy(ret + size + 1, name, name_size);
		if (sf_raw3(SYS_faccessat, AT_FDCWD, ret, X_OK) == 0)
			return true;
	}
	return false;
}

bool sf_program_has_musl(const char *name)
{
	char path[PATH_MAX];

	if (strchr(name, '/'))
		return has_musl(name);
	return find(name, path) && has_musl(path);
}
