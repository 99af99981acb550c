/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Examines how a program file is started: by a dynamic loader, which can preload a library, or without one.
 * The result explains why a library cannot be preloaded, and names a library that must be loaded before it.
 * The file is hostile input.
 */
#ifndef SF_ELF_PROGRAM_H
#define SF_ELF_PROGRAM_H

#include <stdbool.h>
#include <stdint.h>

struct sf_program_file {
	char path[4096];
	bool script;            /* "#!": `interpreter` is the program that reads it */
	bool elf;
	bool is_64_bit;
	uint16_t machine;       /* e_machine */
	bool has_loader;        /* PT_INTERP; else it is static */
	bool has_musl;          /* that loader is the one of the C library musl: no library that needs glibc can be loaded */
	bool gains_rights;      /* setuid, setgid or capabilities: the loader ignores the environment */
	char interpreter[256];  /* of a script */
	char sanitizer[64];     /* the library of a compiler's sanitizer that it needs first, or
				 * "" */
};

/*
 * Looks at the program that execvp() finds by this name: itself if there is a slash in it, else along PATH. A script stands
 * for the program that reads it, also where that is a script. False when a file on the way cannot be read.
 */
bool sf_program_look_named(const char *name, struct sf_program_file *ret);

/* The same for the program that a process runs, whatever its name leads to by now. */
bool sf_program_look_process(int32_t pid, struct sf_program_file *ret);

#endif
