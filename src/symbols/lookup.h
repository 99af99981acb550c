/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Looks up names for addresses (symbols.h) in child processes, one for each image. elfutils does not protect itself
 * from hostile debug data: it may work without end, use any amount of memory, or read a file that gets
 * shorter meanwhile. In a child process the damage is limited: the child ends, and some names are missing.
 *
 * Some children run at once, since each of them waits for a CPU on a busy machine. The limits hold for all images of a session
 * together. When a limit is reached, the image's other
 * addresses get names from its symbol tables only. When a limit is reached again, they get none.
 */
#ifndef SF_SYMBOLS_LOOKUP_H
#define SF_SYMBOLS_LOOKUP_H

#include <stdatomic.h>

#include "symbols/symbols.h"

struct sf_lookup {
	uint64_t cpu_left_ns;      /* that children may still use */
	uint64_t used_ns;          /* CPU time of children that have ended */
	size_t room_left;          /* bytes of answers that may still come from them */
	const atomic_bool *stop;   /* becomes true: no more names are wanted; NULL: never does */
	bool incomplete;           /* a limit was reached: names are missing */
};

/* Addresses of an image, and who receives their names. */
struct sf_lookup_image {
	int fd;
	const char *path;
	bool is_perf_map;          /* names are read as from a perf map (perf_map.h) */
	const uint64_t *addresses;
	size_t n;
	void *arg;                 /* of the sf_location_fn */
};

struct sf_lookup sf_lookup_begin(const atomic_bool *stop);

/*
 * As sf_symbols_open, sf_symbols_resolve and sf_symbols_close for each image. `fn` is called in this process, for one
 * image after the other, in any order of the images. False when memory ran out or no process can be started. Not
 * signal-safe; forks.
 */
bool sf_lookup_resolve(struct sf_lookup *lookup, const struct sf_lookup_image *images, size_t n, sf_location_fn *fn,
		       struct sf_error *err);

/* A message to the user about names that are missing; NULL: none are. */
const char *sf_lookup_note(const struct sf_lookup *lookup);

#endif
