/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A function at a place in code. Where calls are inlined, a place has several, innermost first. A function that passes
 * locations owns their texts and says how long they are valid.
 */
#ifndef SF_BASE_LOCATION_H
#define SF_BASE_LOCATION_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

struct sf_location {
	const char *function;    /* for people: demangled */
	const char *linkage;     /* as the linker sees it, for pprof; equals function for C; "" where the function has no name */
	const char *file;        /* source path, or "" */
	uint32_t    line;        /* 0: unknown */
	bool        inlined;     /* inlined into the next location */
	bool        approximate; /* which calls are inlined here is not known exactly */
};

/* The part of a path behind its last slash. */
static inline const char *sf_base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

#define SF_UNKNOWN_SIZE 280

/* Options of well-known programs by which they write a perf map, with which code in no file has names. */
#define SF_PERF_MAP_HINT "node --perf-basic-prof, erl +JPperf true, php -d opcache.jit_debug=16"

/* The function of code that nothing names: "[unknown in libfoo.so]". `path`: of its file; "": it is in none. */
void sf_location_unknown(const char *path, char ret[SF_UNKNOWN_SIZE]);

#endif
