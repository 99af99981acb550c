/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The ranges of code in a process, copied from CoreCLR's range map into an object for the walker. Ordinary code, one thread at
 * a time.
 */
#ifndef SF_RUNTIME_CORECLR_RANGE_MAP_H
#define SF_RUNTIME_CORECLR_RANGE_MAP_H

#include "base/vec.h"
#include "runtime/coreclr/description.h"
#include "target/images.h"
#include "target/process.h"

/* The functions of the precompiled images that were met; kept until the end, as their images are. Zero it to begin with. */
struct sf_clr_precompiled {
	uint64_t ready, functions;               /* the ReadyToRunInfo, and its table */
	struct sf_clr_functions *copy;           /* NULL: it makes no sense */
};

#define SF_CLR_MAX_IMAGES 4096u          /* later ones have no functions */

struct sf_clr_images {
	SF_VEC(struct sf_clr_precompiled) items;
	uint64_t n_functions;                    /* of all, with those that make no sense */
};

void sf_clr_images_deinit(struct sf_clr_images *images);

/*
 * A new object for walks of this process, or NULL: no memory, or the runtime has no code yet. The caller frees it by
 * sf_clr_object_destroy.
 */
struct sf_coreclr *sf_clr_object_create(const struct sf_clr_description *description,
					const struct sf_reader *memory, struct sf_clr_images *images,
					const struct sf_process *process, struct sf_images *files,
					uint32_t slot);
void sf_clr_object_destroy(struct sf_coreclr *object);   /* takes NULL */

/* Whether both have the same ranges. */
bool sf_clr_object_equals(const struct sf_coreclr *a, const struct sf_coreclr *b);

#endif
