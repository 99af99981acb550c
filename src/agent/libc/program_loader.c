/* SPDX-License-Identifier: Apache-2.0 */
/* Looks for a program as libc does, and at the start of its file for the path of its loader, or of a script's interpreter. */
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
#define MAX_SCRIPTS 5  /* one the interpreter of the other (kernel: fs/exec.c, exec_binprm) */

/* As many bytes as there are, and a zero behind them; 0 where it cannot be read. */
static size_t read_start(const char *path, char ret[MAX_START])
{
	const int flags = O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY;
	long fd = sf_raw4(SYS_openat, AT_FDCWD, path, flags, 0), n;

	if (fd < 0)
		return 0;
	n = sf_raw3(SYS_read, fd, ret, MAX_START - 1);
	sf_raw1(SYS_close, fd);
	n = n > 0 ? n : 0;
	ret[n] = 0;
	return (size_t)n;
}

/* The first word behind "#!", in the text itself; NULL: it is no script. */
static const char *interpreter_in(char *start)
{
	char *path;

	if (memcmp(start, "#!", 2) != 0)
		return NULL;
	path = start + 2 + strspn(start + 2, " \t");
	path[strcspn(path, " \t\n")] = 0;
	return path;
}

static bool has_musl(const char *path)
{
	static const char musl[] = "/" SF_MUSL_LOADER;
	char start[MAX_START];
	size_t n = 0;

	/* A path that lies in `start` is opened before that is written again. */
	for (int i = 0; i <= MAX_SCRIPTS && path; i++) {
		n = read_start(path, start);
		path = n > 2 ? interpreter_in(start) : NULL;
	}
	return n > SELFMAG && memcmp(start, ELFMAG, SELFMAG) == 0 && memmem(start, n, musl, strlen(musl));
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
