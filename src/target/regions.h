/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The regions of a new code map: each executable mapping of a process, with the image that it shows. They come from the
 * system's list of mappings, and from the records of an engine where that list lacks some. Ordinary code, one thread at a time.
 */
#ifndef SF_TARGET_REGIONS_H
#define SF_TARGET_REGIONS_H

#include "base/vec.h"
#include "frozen/unwind/code_map.h"
#include "target/process.h"

#define SF_VDSO "[vdso]" /* which the kernel maps into each program (vdso(7)), at an address of its own */

struct sf_regions {
	int32_t pid, live_id; /* sf_process_live_id() */
	int32_t root_pid;
	struct sf_images *images;
	SF_VEC(struct sf_region) all; /* by their addresses; their tables are filled in later, when all new images have been loaded */
	uint64_t vdso;       /* where it is; 0: nowhere */
	const struct sf_image *perf_map; /* once it was looked for; NULL: the process has none */
	bool has_looked;
	bool recorded;       /* the mappings are those that an engine has recorded */
	bool no_memory;
};

/*
 * Fills in all that is not of the process, whose map may be an older one. False: nothing is known of it. Its memory is released by
 * sf_vec_deinit(&regions->all).
 */
bool sf_regions_collect(struct sf_regions *regions, struct sf_process *process, struct sf_error *err);

/* The first of the regions, in the order of addresses, that ends behind the address; n: there is none. */
size_t sf_regions_first(const struct sf_region *regions, size_t n, uint64_t address);

#endif
