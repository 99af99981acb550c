/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names for addresses (symbols.h), looked up in a process of its own. What an image's maker can make
 * of its debug data, elfutils takes: endless work, any amount of memory, a file that gets shorter
 * while it is read. Here that costs the child's life, within limits, and some names.
 *
 * The limits are those of a session, for all its images together. Where one is reached, the image's
 * other addresses get names from its symbol tables only, and then none.
 */
#ifndef SF_SYMBOLS_APART_H
#define SF_SYMBOLS_APART_H

#include <stdatomic.h>

#include "symbols/symbols.h"

struct sf_apart {
	uint64_t cpu_left_ns;      /* that children may still use */
	size_t text_left;          /* bytes of names that may still come from them */
	const atomic_bool *stop;   /* becomes true: no more names are wanted; NULL: never does */
	bool incomplete;           /* a limit was reached: names are missing */
};

struct sf_apart sf_apart_begin(const atomic_bool *stop);

/*
 * As sf_symbols_open, sf_symbols_resolve and sf_symbols_close. False when memory ran out or no
 * process can be started. Not signal-safe; forks.
 */
bool sf_apart_resolve(struct sf_apart *apart, int fd, const char *path, const uint64_t *addresses,
		      size_t n, sf_location_fn *fn, void *arg, struct sf_error *err);

/* What the user should read about names that are missing; NULL: none are. */
const char *sf_apart_note(const struct sf_apart *apart);

#endif
