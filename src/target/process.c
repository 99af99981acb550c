/* SPDX-License-Identifier: Apache-2.0 */
/* The code map of a watched process, the mappings that an engine has recorded of it, and the rules for when the map is renewed. */
#include "target/process.h"

#include <stdlib.h>
#include <string.h>

#include "base/vec.h"
#include "frozen/raw.h"
#include "os/clock.h"
#include "os/process.h"
#include "target/regions.h"

#define REFRESH_SHARE 20
#define REFRESH_MIN_NS 10000000
#define SAME_MAX_NS 200000000      /* of a map that stays the same; the pause doubles up to this */
#define REPLACED_MIN_NS 1000000
#define YOUNG_NS 1000000000
#define YOUNG_SHARE 3
#define KEEP_SHARE 200             /* so many times what it takes to read it a map is kept, if no code is found to be missing */
#define KEEP_MIN_NS 100000000
#define KEEP_MAX_NS 1000000000
#define N_AT_ONCE 16               /* refreshes of a program's start: a loader maps libraries at every moment */
#define MAX_RECORDED 8192          /* mappings of one process */

void sf_process_init(struct sf_process *process, int32_t pid)
{
	*process = (struct sf_process){ .pid = pid, .arch = sf_process_arch(sf_process_live_id(pid)),
					.since_ns = sf_now_ns(), .n_at_once = N_AT_ONCE };
	if (!process->arch)
		process->arch = sf_arch_host();
}

void sf_process_deinit(struct sf_process *process)
{
	free(process->map);
	process->map = NULL;
	for (size_t i = 0; i < process->recorded.n; i++)
		free(process->recorded.items[i].path);
	sf_vec_deinit(&process->recorded);
}

void sf_process_restart(struct sf_process *process)
{
	const int32_t pid = process->pid, root_pid = process->root_pid;

	sf_process_deinit(process);
	sf_process_init(process, pid);
	process->root_pid = root_pid;
}

void sf_process_set_parent(struct sf_process *process, int32_t parent, const struct sf_process *known)
{
	process->root_pid = known && sf_process_is_over(parent) ? known->root_pid : parent;
}

void sf_process_replace_runtime(struct sf_process *process, const struct sf_runtime *old,
				const struct sf_runtime *runtime)
{
	size_t n = 0;

	for (size_t i = 0; i < process->n_runtimes; i++) {
		if (process->runtimes[i] != old)
			process->runtimes[n++] = process->runtimes[i];
	}
	if (runtime && n < SF_MAX_RUNTIMES)
		process->runtimes[n++] = runtime;
	for (size_t i = n; i < process->n_runtimes; i++)
		process->runtimes[i] = NULL;
	process->n_runtimes = n;
}

/* A map that is changed is another one. */
static uint64_t next_serial(void)
{
	static _Atomic uint64_t last;

	return ++last;
}

static void show_runtimes(const struct sf_process *process, struct sf_code_map *map)
{
	memcpy(map->runtimes, process->runtimes, sizeof(map->runtimes));
	map->n_runtimes = process->n_runtimes;
	map->serial = next_serial();
}

void sf_process_show_runtimes(struct sf_process *process)
{
	if (process->map)
		show_runtimes(process, process->map);
}

static struct sf_code_map *make_map(const struct sf_regions *regions,
				    const struct sf_process *process)
{
	size_t n = regions->all.n;
	struct sf_code_map *map = malloc(sizeof(*map) + n * sizeof(map->regions[0]));

	if (!map)
		return NULL;
	show_runtimes(process, map);
	map->n_regions = n;
	map->pops_return = false;
	for (size_t i = 0; i < n; i++) {
		struct sf_region *region = &map->regions[i];

		*region = regions->all.items[i];
		if (region->image) {
			const struct sf_image *image =
				sf_images_get(regions->images, region->image);

			region->table = image->table.header ? &image->table : NULL;
			map->pops_return |= region->table && region->table->header->flags & SF_TABLE_POPS_RETURN;
		}
	}
	return map;
}

/* The list was read in an exec, or at the end of the process, and was empty. */
static bool is_empty(const struct sf_process *process)
{
	return process->map && !process->map->n_regions;
}

bool sf_process_map_is_read(const struct sf_process *process)
{
	return process->map && process->map->n_regions && !process->map_is_recorded;
}

bool sf_process_fork(struct sf_process *process, const struct sf_process *parent)
{
	const size_t size = parent->map ? sizeof(*parent->map) + parent->map->n_regions * sizeof(parent->map->regions[0]) : 0;
	struct sf_code_map *map = size ? malloc(size) : NULL;

	if (!size)
		return true;
	if (!map)
		return false;
	memcpy(map, parent->map, size);
	show_runtimes(process, map);
	free(process->map);
	process->map = map;
	process->map_is_recorded = process->map_is_inherited = true;
	process->refreshed_ns = sf_now_ns(); /* /proc may show the next program already, of which no mapping is recorded yet */
	process->vdso = parent->vdso;
	process->arch = parent->arch;
	return true;
}

/* --- mappings that an engine has recorded --- */

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

/* --- when the map is renewed --- */

static bool is_same(const struct sf_code_map *a, const struct sf_code_map *b)
{
	return a && a->n_runtimes == b->n_runtimes && memcmp(a->runtimes, b->runtimes, sizeof(a->runtimes)) == 0 &&
	       a->n_regions == b->n_regions && a->pops_return == b->pops_return &&
	       memcmp(a->regions, b->regions, a->n_regions * sizeof(a->regions[0])) == 0;
}

/* A map that stays the same keeps its serial number, too. Returns the old one, if it was replaced. */
static struct sf_code_map *take_map(struct sf_process *process, struct sf_code_map *map)
{
	struct sf_code_map *old = process->map;
	const uint64_t longer_ns = process->same_pause_ns ? 2 * process->same_pause_ns : REFRESH_MIN_NS;

	if (!is_same(old, map)) {
		process->map = map;
		process->same_pause_ns = 0;
		return old;
	}
	free(map);
	process->same_pause_ns = longer_ns < SAME_MAX_NS ? longer_ns : SAME_MAX_NS;
	return NULL;
}

/* NULL: no memory. Loads the images that are new, which takes *load_ns_ret of the thread's CPU time. */
static struct sf_code_map *load_map(const struct sf_process *process, const struct sf_regions *regions, uint64_t *load_ns_ret)
{
	const uint64_t start_ns = sf_raw_thread_cpu_ns();

	sf_images_load(regions->images);
	*load_ns_ret = sf_raw_thread_cpu_ns() - start_ns;
	return make_map(regions, process);
}

bool sf_process_refresh_beside(struct sf_process *process, struct sf_images *images, struct sf_code_map **old_ret,
			       struct sf_error *err)
{
	struct sf_regions regions = {
		.pid = process->pid,
		.live_id = sf_process_live_id(process->pid),
		.root_pid = process->root_pid,
		.images = images,
	};
	struct sf_code_map *map = NULL;
	uint64_t start_ns = sf_raw_thread_cpu_ns(), load_ns = 0;
	const bool known = sf_regions_collect(&regions, process, err);

	*old_ret = NULL;
	if (known)
		map = load_map(process, &regions, &load_ns);
	sf_vec_deinit(&regions.all);
	process->refreshed_ns = sf_now_ns();
	process->is_outdated = process->is_overlaid = false;
	process->n_at_once -= process->n_at_once > 0;
	process->load_cost_ns = load_ns;
	process->refresh_cost_ns = sf_raw_thread_cpu_ns() - start_ns - load_ns;
	if (regions.no_memory || (known && !map)) {
		free(map);
		return sf_fail_memory(err);
	}
	if (!known)
		return false;
	process->map_is_inherited &= regions.recorded;
	process->map_is_recorded = regions.recorded && (!process->map || is_empty(process) || process->map_is_recorded);
	process->vdso = regions.vdso;
	*old_ret = take_map(process, map);
	return true;
}

bool sf_process_refresh(struct sf_process *process, struct sf_images *images, struct sf_error *err)
{
	struct sf_code_map *old;
	const bool ok = sf_process_refresh_beside(process, images, &old, err);

	free(old);
	return ok;
}

/* Another program is in the process by now: what was the map's first code is no longer there. */
static bool is_replaced(const struct sf_process *process)
{
	char byte;

	return sf_process_map_is_read(process) &&
	       !sf_process_read_live(process->pid, &byte, process->map->regions[0].start, 1);
}

uint64_t sf_process_refresh_pause_ns(const struct sf_process *process, uint64_t now_ns)
{
	const bool young = now_ns - process->since_ns < YOUNG_NS;
	const uint64_t pause_ns = process->refresh_cost_ns * (young ? YOUNG_SHARE : REFRESH_SHARE) + process->load_cost_ns;
	const uint64_t least_ns = process->same_pause_ns || young ? process->same_pause_ns : REFRESH_MIN_NS;

	if (young && process->n_at_once)
		return 0;
	return pause_ns > least_ns ? pause_ns : least_ns;
}

/* For how long a map is kept that no code is found to be missing in. */
static uint64_t keep_ns(const struct sf_process *process)
{
	const uint64_t ns = process->refresh_cost_ns * KEEP_SHARE;

	if (ns < KEEP_MIN_NS)
		return KEEP_MIN_NS;
	return ns < KEEP_MAX_NS ? ns : KEEP_MAX_NS;
}

bool sf_process_may_mislead(const struct sf_process *process, bool has_records, uint64_t now_ns)
{
	return process->is_overlaid || now_ns - process->refreshed_ns > (has_records ? KEEP_MAX_NS : keep_ns(process));
}

bool sf_process_refresh_stale(struct sf_process *process, struct sf_images *images)
{
	const uint64_t now_ns = sf_now_ns();
	const uint64_t age_ns = now_ns - process->refreshed_ns;
	const uint64_t serial = process->map ? process->map->serial : 0;

	if (process->map && !process->is_outdated && age_ns < sf_process_refresh_pause_ns(process, now_ns)) {
		if (age_ns < REPLACED_MIN_NS || !is_replaced(process))
			return false;
		process->since_ns = now_ns;
		process->n_at_once = N_AT_ONCE;
	}
	return sf_process_refresh(process, images, NULL) && process->map->serial != serial;
}

void sf_process_refresh_due(struct sf_process *process, struct sf_images *images, bool has_records)
{
	if (!process->map)
		sf_process_refresh_stale(process, images);
	else if (sf_process_may_mislead(process, has_records, sf_now_ns()))
		sf_process_refresh(process, images, NULL);
}
