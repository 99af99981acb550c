/* SPDX-License-Identifier: Apache-2.0 */
/* Finding the region of an address: a binary search in a map that never changes. */
#include "frozen/code_map.h"
#include "frozen/hotspot/hotspot.h"

#include "frozen/frozen.h"

const struct sf_region *sf_code_map_find(const struct sf_code_map *map, uint64_t pc)
{
	const struct sf_region *regions;
	size_t n;

	if (!map)
		return NULL;
	if (map->hotspot && sf_hotspot_holds(map->hotspot, pc))
		return &map->hotspot->code;
	if (map->n_regions == 0)
		return NULL;
	regions = map->regions;
	/* The last region that does not start above pc; the first if there is none. */
	for (n = map->n_regions; n > 1; n -= n / 2)
		regions += regions[n / 2].start <= pc ? n / 2 : 0;
	return pc >= regions->start && pc < regions->end ? regions : NULL;
}
