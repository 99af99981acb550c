/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the region of an address, by a binary search in a map that never changes, and that of a frame. Signal-safe. */
#include "frozen/unwind/code_map.h"
#include "frozen/unwind/walk.h"

#include "frozen/frozen.h"

/* A runtime's own region. */
static const struct sf_region *find_in_runtimes(const struct sf_code_map *map, uint64_t pc)
{
	for (size_t i = 0; i < map->n_runtimes; i++) {
		const struct sf_runtime *runtime = map->runtimes[i];
		const struct sf_region *region = pc >= runtime->start && pc < runtime->end ?
			runtime->ops->find(runtime, pc) : NULL;

		if (region)
			return region;
	}
	return NULL;
}

const struct sf_runtime *sf_code_map_runtime(const struct sf_code_map *map, uint64_t pc)
{
	const struct sf_region *region = map ? find_in_runtimes(map, pc) : NULL;

	return region ? region->runtime : NULL;
}

const struct sf_region *sf_code_map_find(const struct sf_code_map *map, uint64_t pc)
{
	const struct sf_region *regions;
	size_t n;

	if (!map)
		return NULL;
	regions = find_in_runtimes(map, pc);
	if (regions || map->n_regions == 0)
		return regions;
	regions = map->regions;
	/* The last region that does not start above pc; the first if there is none. */
	for (n = map->n_regions; n > 1; n -= n / 2)
		regions += regions[n / 2].start <= pc ? n / 2 : 0;
	return pc >= regions->start && pc < regions->end ? regions : NULL;
}

bool sf_is_sigreturn(const struct sf_still *still, uint64_t pc)
{
	const struct sf_reader code = sf_reader_outside(&still->memory);

	return still->arch->is_sigreturn(&code, pc);
}

const struct sf_region *sf_frame_region(const struct sf_still *still, uint64_t pc, bool exact)
{
	const struct sf_region *region = sf_code_map_find(still->map, exact ? pc : pc - 1);

	if (region || exact)
		return region;
	region = sf_code_map_find(still->map, pc);
	return region && sf_is_sigreturn(still, pc) ? region : NULL;
}
