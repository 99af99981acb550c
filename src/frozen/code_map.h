/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is mapped where in one process: the sorted ranges of executable code, each with its
 * unwind table. Built by ordinary code (src/target/process.h), then never changed; a new
 * map replaces an old one when the process maps or unmaps code.
 */
#ifndef SF_FROZEN_CODE_MAP_H
#define SF_FROZEN_CODE_MAP_H

#include <stddef.h>
#include <stdint.h>

#include "frozen/table.h"

struct sf_region {
	uint64_t start, end;           /* addresses in the target; regions do not overlap */
	uint64_t bias;                 /* address in the file = pc - bias (wraps) */
	const struct sf_table *table;  /* NULL: none; frame pointers are tried */
	uint32_t image;                /* number of the image (target/image.h), 0 for none */
	uint32_t reserved;
};

struct sf_hotspot;

struct sf_code_map {
	const struct sf_hotspot *hotspot; /* the Java virtual machine in the process; NULL: none */
	size_t n_regions;
	struct sf_region regions[];    /* by start, ascending */
};

/* The region that holds pc, or NULL. Signal-safe. */
const struct sf_region *sf_code_map_find(const struct sf_code_map *map, uint64_t pc);

#endif
