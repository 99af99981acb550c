/* SPDX-License-Identifier: Apache-2.0 */
/*
 * In place of elf_error.o of Debian's libelf.a, the only member of it that cannot be part of a
 * shared library: its thread-local variable is addressed as a program's. Defined here, the linker
 * does not take that member. A failure in libelf keeps its number; the words for it would need a
 * catalogue of translations.
 */
#include <stdio.h>

#include <libelf.h>

void __libelf_seterrno(int value); /* libelfP.h: libelf's own, from all of its members */

static _Thread_local int last_error;
static _Thread_local char message[32];

void __libelf_seterrno(int value)
{
	last_error = value;
}

int elf_errno(void)
{
	int value = last_error;

	last_error = 0;
	return value;
}

const char *elf_errmsg(int error)
{
	if (error == 0 && last_error == 0)
		return NULL;
	snprintf(message, sizeof(message), "libelf error %d", error > 0 ? error : last_error);
	return message;
}
