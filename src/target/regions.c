/* SPDX-License-Identifier: Apache-2.0 */
/* The regions of a code map: from the system's list of a process's mappings, and from the records of an engine. */
#include "target/regions.h"

#include <stdlib.h>
#include <string.h>

#include "base/search.h"
#include "target/perf_map_file.h"

#define MAX_REGIONS 1000000

/* Where the image is: its table is filled in later, when all new images have been loaded. */
static void place_image(struct sf_region *region, const struct sf_image *image,
			const struct sf_mapping *mapping)
{
	uint64_t address;

	region->image = image->number;
	if (sf_image_address(image, mapping->offset, &address))
		region->bias = mapping->start - address;
	else
		region->bias = mapping->start - mapping->offset;
}

/* Of a process that has ended the file is found by its path, if it is the same one. */
static const struct sf_image *find_image(const struct sf_regions *regions, const struct sf_mapping *mapping)
{
	const struct sf_image_seen seen = { .path = mapping->path, .inode = mapping->inode, .device = mapping->device };

	if (mapping->path[0] != '/' && strcmp(mapping->path, SF_VDSO) != 0)
		return NULL;
	return regions->recorded ? sf_images_add(regions->images, regions->root_pid, &seen)
				: sf_images_find(regions->images, regions->live_id, mapping);
}

/* Whether it is memory that several may share, for which the list of mappings has a path. */
static bool is_shared_memory(const struct sf_mapping *mapping)
{
	static const char *const paths[] = { "/dev/zero", "/memfd:", "/SYSV" };

	for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
		if (strncmp(mapping->path, paths[i], strlen(paths[i])) == 0)
			return true;
	}
	return false;
}

/* Code in no file is that of the perf map, by the addresses of the process. */
static void place_perf_map(struct sf_regions *regions, struct sf_region *region)
{
	if (!regions->has_looked)
		regions->perf_map = sf_perf_map_file(regions->images, regions->pid);
	regions->has_looked = true;
	if (regions->perf_map)
		region->image = regions->perf_map->number;
}

/* A program may also map a file in memory (memfd_create(2)), which is an ELF file then. */
static void place(struct sf_regions *regions, struct sf_region *region, const struct sf_mapping *mapping)
{
	const struct sf_image *image = find_image(regions, mapping);
	uint64_t address;

	if (image && (!is_shared_memory(mapping) || sf_image_address(image, mapping->offset, &address)))
		place_image(region, image, mapping);
	else
		place_perf_map(regions, region);
}

static bool collect(const struct sf_mapping *mapping, void *arg)
{
	struct sf_regions *regions = arg;
	struct sf_region region = { .start = mapping->start, .end = mapping->end };

	/* The legacy vsyscall page is no memory that can be read, and holds no frames. */
	if (!mapping->executable || strcmp(mapping->path, "[vsyscall]") == 0)
		return true;
	if (strcmp(mapping->path, SF_VDSO) == 0)
		regions->vdso = mapping->start;
	place(regions, &region, mapping);
	if (regions->all.n >= MAX_REGIONS || !sf_vec_push(&regions->all, region)) {
		regions->no_memory = true;
		return false;
	}
	return true;
}

static int by_start(const void *left, const void *right)
{
	const struct sf_recorded_mapping *a = left, *b = right;

	return sf_order(a->mapping.start, b->mapping.start);
}

static int by_region(const void *left, const void *right)
{
	const struct sf_region *a = left, *b = right;

	return sf_order(a->start, b->start);
}

static bool is_recorded(const struct sf_process *process, const struct sf_region *region)
{
	for (size_t i = 0; i < process->recorded.n; i++) {
		if (region->start < process->recorded.items[i].mapping.end && process->recorded.items[i].mapping.start < region->end)
			return true;
	}
	return false;
}

/* The regions of a map that was read from the system, or inherited, without those that recorded mappings have replaced. */
static void keep_known(const struct sf_process *process, struct sf_regions *regions)
{
	for (size_t i = 0; i < process->map->n_regions; i++) {
		if (!is_recorded(process, &process->map->regions[i]) && !sf_vec_push(&regions->all, process->map->regions[i]))
			regions->no_memory = true;
	}
	qsort(regions->all.items, regions->all.n, sizeof(*regions->all.items), by_region);
}

/* The last one of the vDSO. NULL: no mappings of a whole program were recorded. */
static const struct sf_recorded_mapping *recorded_vdso(const struct sf_process *process)
{
	for (size_t i = 0; i < process->recorded.n; i++) {
		if (strcmp(process->recorded.items[i].path, SF_VDSO) == 0)
			return &process->recorded.items[i];
	}
	return NULL;
}

/* Regions are in the order of their addresses. False: nothing is known. */
static bool collect_recorded(struct sf_process *process, struct sf_regions *regions)
{
	if (!process->recorded.n || regions->no_memory)
		return false;
	regions->recorded = true;
	regions->all.n = 0;
	qsort(process->recorded.items, process->recorded.n, sizeof(*process->recorded.items), by_start);
	for (size_t i = 0; i < process->recorded.n; i++) {
		process->recorded.items[i].mapping.path = process->recorded.items[i].path;
		if (!collect(&process->recorded.items[i].mapping, regions))
			break;
	}
	process->map_is_inherited &= !recorded_vdso(process);
	if (process->map && (!process->map_is_recorded || process->map_is_inherited))
		keep_known(process, regions);
	return true;
}

size_t sf_regions_first(const struct sf_region *regions, size_t n, uint64_t address)
{
	return sf_count_before(n, i, regions[i].end <= address);
}

/* Whether the list has code there. It is in the order of addresses. */
static bool is_listed(const struct sf_regions *regions, size_t n, const struct sf_mapping *mapping)
{
	const size_t first = sf_regions_first(regions->all.items, n, mapping->start);

	return first < n && regions->all.items[first].start < mapping->end;
}

/*
 * Files that were mapped by a record, and are no longer in the list: samples of before are in them. There is a record of whatever
 * takes their place.
 */
static void add_gone(const struct sf_process *process, struct sf_regions *regions)
{
	const size_t n = regions->all.n;

	regions->recorded = true;
	for (size_t i = 0; i < process->recorded.n; i++) {
		struct sf_mapping mapping = process->recorded.items[i].mapping;

		mapping.path = process->recorded.items[i].path;
		if (mapping.path[0] == '/' && !is_listed(regions, n, &mapping) && !collect(&mapping, regions))
			break;
	}
	regions->recorded = false;
	if (regions->all.n > n)
		qsort(regions->all.items, regions->all.n, sizeof(*regions->all.items), by_region);
}

/*
 * Whether the map that was read is of a program which the process has executed since. The engine has a record of that,
 * too; the stacks that come before it are of the program whose mappings were recorded.
 */
static bool is_of_next_program(const struct sf_process *process, const struct sf_regions *regions)
{
	const struct sf_recorded_mapping *vdso = recorded_vdso(process);

	return vdso && vdso->mapping.start != regions->vdso;
}

bool sf_regions_collect(struct sf_regions *regions, struct sf_process *process, struct sf_error *err)
{
	const bool read = sf_process_code_maps(regions->live_id, collect, regions, err);

	/* The list of a process that has ended, and that its parent has not waited for, is empty: what was known stays. */
	if (!read || !regions->all.n || is_of_next_program(process, regions))
		return collect_recorded(process, regions) || (read && !process->map);
	add_gone(process, regions);
	return true;
}
