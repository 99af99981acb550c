/* SPDX-License-Identifier: Apache-2.0 */
/* Looks at the start of a program's file for the path of its loader. */
#include "agent/libc/program_loader.h"

#include <elf.h>
#include <fcntl.h>
#include <string.h>

#include "base/musl.h"
#include "frozen/raw.h"

#define MAX_START 1024 /* linkers put the path behind the program headers */

bool sf_program_has_musl(const char *path)
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
