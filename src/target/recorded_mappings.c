/* SPDX-License-Identifier: Apache-2.0 */
/* Mappings that an engine has recorded, of a process. */
#include "target/recorded_mappings.h"

#include <stdlib.h>
#include <string.h>

#include "base/vec.h"
#include "os/process.h"
#include "target/regions.h"

#define MAX_RECORDED 8192 /* mappings of one process */

void sf_process_set_parent(struct sf_process *process, int32_t parent, const struct sf_process *known)
{
	process->root_pid = known && sf_process_is_over(parent) ? known->root_pid : parent;
}

void sf_process_restart(struct sf_process *process)
{
	const int32_t pid = process->pid, root_pid = process->root_pid;

	sf_process_deinit(process);
	sf_process_init(process, pid);
	process->root_pid = root_pid;
}

const struct sf_recorded_mapping *sf_recorded_vdso(const struct sf_process *process)
{
	for (size_t i = 0; i < process->recorded.n; i++) {
		if (strcmp(process->recorded.items[i].path, SF_VDSO) == 0)
			return &process->recorded.items[i];
	}
	return NULL;
}

static void forget_replaced(struct sf_process *process, const struct sf_mapping *mapping)
{
	size_t n = 0;

	for (size_t i = 0; i < process->recorded.n; i++) {
		const struct sf_mapping *known = &process->recorded.items[i].mapping;

		if (known->start < mapping->end && mapping->start < known->end)
			free(process->recorded.items[i].path);
		else
			process->recorded.items[n++] = process->recorded.items[i];
	}
	process->recorded.n = n;
}

/* Drops a map that was read after the process had executed the next program. */
static void forget_map(struct sf_process *process)
{
	free(process->map);
	process->map = NULL;
	process->refreshed_ns = 0;
}

static bool is_of(const struct sf_region *region, struct sf_images *images, const struct sf_mapping *mapping)
{
	const struct sf_image *image = region->image ? sf_images_get(images, region->image) : NULL;

	if (!image || image->is_perf_map || image->from_memory)
		return !mapping->inode;
	return image->inode == mapping->inode && image->device == mapping->device && region->start == mapping->start;
}

/* Whether the map has other code there. */
static bool replaces_code(const struct sf_process *process, struct sf_images *images, const struct sf_mapping *mapping)
{
	const struct sf_code_map *map = process->map;
	size_t i;

	if (!sf_process_map_is_read(process))
		return false;
	i = sf_regions_first(map->regions, map->n_regions, mapping->start);
	for (; i < map->n_regions && map->regions[i].start < mapping->end; i++) {
		if (!is_of(&map->regions[i], images, mapping))
			return true;
	}
	return false;
}

bool sf_process_add_mapping(struct sf_process *process, struct sf_images *images, const struct sf_mapping *mapping)
{
	struct sf_recorded_mapping recorded = { .mapping = *mapping };

	if (mapping->end <= mapping->start)
		return true;
	if (process->map_is_recorded || (process->map && !process->map->n_regions))
		process->refreshed_ns = 0; /* it has more now */
	else if (process->map && strcmp(mapping->path, SF_VDSO) == 0 && mapping->start != process->vdso)
		forget_map(process);
	process->is_outdated = true;
	process->is_overlaid |= replaces_code(process, images, mapping);
	forget_replaced(process, mapping);
	if (process->recorded.n >= MAX_RECORDED)
		return true;
	recorded.path = strdup(mapping->path);
	if (recorded.path && sf_vec_push(&process->recorded, recorded))
		return true;
	free(recorded.path);
	return false;
}
