/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Looks up names while a recording goes on, so that little is left for its end, when the user waits. A thread does it
 * in rounds. Each round waits until four times as much has been recorded as before the last one, since a file is opened
 * anew in each; where the end is known, there is one just before it. All rounds together use at most a part of the CPU
 * time that names may take.
 *
 * Only the time is spent elsewhere: what is not named here is named at the end.
 */
#ifndef SF_SESSION_EARLY_NAMES_H
#define SF_SESSION_EARLY_NAMES_H

#include "session/name_round.h"

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

#endif
