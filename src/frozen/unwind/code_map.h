/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The code map of one process: its executable regions, sorted by address, each with its unwind
 * table. Ordinary code builds a map (src/target/process.h). A map never changes afterwards; when the
 * process maps or unmaps code, a new map replaces the old one.
 */
#ifndef SF_FROZEN_UNWIND_CODE_MAP_H
#define SF_FROZEN_UNWIND_CODE_MAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "frozen/runtime.h"
#include "frozen/unwind/table.h"

struct sf_region {
	uint64_t start, end;           /* addresses in the target; regions do not overlap */
	uint64_t bias;                 /* address in the file = pc - bias (wraps) */
	const struct sf_table *table;  /* NULL: none; frame pointers are tried */
	const struct sf_runtime *runtime; /* the one whose code is here; NULL: native code */
	uint32_t image;                /* number of the image (target/image.h), 0 for none */
	uint32_t reserved;
};

struct sf_code_map {
	const struct sf_runtime *runtimes[SF_MAX_RUNTIMES]; /* those in the process; not owned */
	size_t n_runtimes, n_regions;
	bool pops_return;              /* the table of a region has SF_TABLE_POPS_RETURN */
	uint64_t serial;               /* no other map has it; 0: walks by this map keep no tails (tail.h) */
	struct sf_region regions[];    /* by start, ascending */
};

/* Whether pc may be in the code of a runtime: within the bounds of one. Signal-safe. */
static inline bool sf_code_map_near_runtime(const struct sf_code_map *map, uint64_t pc)
{
	for (size_t i = 0; map && i < map->n_runtimes; i++) {
		if (pc >= map->runtimes[i]->start && pc < map->runtimes[i]->end)
			return true;
	}
	return false;
}

/* The first of the process's runtimes that is of this kind, or NULL. Signal-safe. */
static inline const void *sf_code_map_runtime_of(const struct sf_code_map *map, const struct sf_runtime_ops *ops)
{
	for (size_t i = 0; map && i < map->n_runtimes; i++) {
		if (map->runtimes[i]->ops == ops)
			return map->runtimes[i];
	}
	return NULL;
}

/* The runtime whose code pc is in, or NULL. Signal-safe. */
const struct sf_runtime *sf_code_map_runtime(const struct sf_code_map *map, uint64_t pc);

/* The region that holds pc, or NULL: a runtime's, if one has it. Signal-safe. */
const struct sf_region *sf_code_map_find(const struct sf_code_map *map, uint64_t pc);

#endif
