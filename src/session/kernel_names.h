/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The names of the kernel's functions for a recording. Reading them the first time takes a tenth of a second of CPU
 * time. A thread does it while the recording goes on, since at its end the user waits.
 */
#ifndef SF_SESSION_KERNEL_NAMES_H
#define SF_SESSION_KERNEL_NAMES_H

#include <pthread.h>

#include "os/kernel_symbols.h"

/* Zeroed memory has none. */
struct sf_kernel_names {
	struct sf_kernel_symbols symbols; /* the thread's, as long as it runs */
	pthread_t reader;
	bool begun, is_read;
};

/* Begins to read, the first time that it is called. Any one thread. */
void sf_kernel_names_begin(struct sf_kernel_names *names);

/*
 * The symbols in which these addresses are looked up: those that were read at the beginning, or new ones where an
 * address is in code that was loaded into the kernel, perhaps since. Waits for the thread.
 */
const struct sf_kernel_symbols *sf_kernel_names_for(struct sf_kernel_names *names, const uint64_t *addresses, size_t n);

void sf_kernel_names_deinit(struct sf_kernel_names *names);

#endif
