/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names for the addresses of a recording: where recording meets symbols. Addresses are named in rounds. A round takes the
 * addresses that no round has taken before, looks up their names, and writes them to the recording. The look-up needs
 * nothing of the recording, so another thread can do it while the recording goes on.
 *
 * Early rounds leave little for the end of the recording, when the user waits. Each of them waits until four times as
 * much has been recorded as before the last one, since a file is opened anew in each; where the end is known, there is one
 * just before it. All early rounds together use at most a part of the CPU time that names may take. What has no name then
 * is named at the end.
 */
#ifndef SF_SESSION_NAMING_H
#define SF_SESSION_NAMING_H

#include <pthread.h>

#include "os/kernel_symbols.h"
#include "recording/recording.h"
#include "symbols/lookup.h"
#include "target/images.h"

/*
 * The names of the kernel's functions. Reading them the first time takes a tenth of a second of CPU time. A thread does it
 * while the recording goes on.
 */
struct sf_kernel_names {
	struct sf_kernel_symbols symbols; /* the thread's, as long as it runs */
	pthread_t reader;
	bool begun, is_read;
};

/* The sources of names, which the rounds of a recording share. All but `lookup` is zero at the begin. */
struct sf_name_sources {
	struct sf_lookup lookup;
	struct sf_kernel_names kernel;
};

void sf_name_sources_deinit(struct sf_name_sources *sources);

/* How many of the `n` functions at an address get no name: of too many, the innermost. The outermost has the code itself. */
static inline size_t sf_inlined_left_out(size_t n)
{
	const size_t most = 64;

	return n > most ? n - most : 0;
}

struct sf_early_names;

/*
 * `end_ns`: when the recording ends, UINT64_MAX where that is not known. `sources` are this one's until it is closed.
 * NULL: no memory.
 */
struct sf_early_names *sf_early_names_open(struct sf_recording *recording, struct sf_images *images,
					   struct sf_name_sources *sources, uint64_t end_ns);

/* Begins a round that is due, or writes what one has found. On the thread that writes the recording, every 100 ms. */
bool sf_early_names_tick(struct sf_early_names *early, uint64_t now_ns, struct sf_error *err);

/* Waits for a round under way, and writes what it has found. Takes NULL. */
bool sf_early_names_close(struct sf_early_names *early, struct sf_error *err);

/* Names every address that has no name yet. An image that cannot be read leaves its own unnamed. */
bool sf_session_name_all(struct sf_recording *recording, struct sf_images *images, struct sf_name_sources *sources,
			 struct sf_error *err);

#endif
