/* SPDX-License-Identifier: Apache-2.0 */
/* The code map of a watched process, and the rules for when the map is renewed. */
#include "target/process.h"

#include <stdlib.h>
#include <string.h>

#include "base/vec.h"
#include "frozen/raw.h"
#include "os/clock.h"
#include "target/perf_map_file.h"
#include "target/recorded_mappings.h"

#define MAX_REGIONS 1000000
#define REFRESH_SHARE 20
#define REFRESH_MIN_NS 10000000
#define REPLACED_MIN_NS 1000000
#define YOUNG_NS 1000000000
#define YOUNG_SHARE 3
#define N_AT_ONCE 16               /* refreshes of a program's start: a loader maps libraries at every moment */

struct collecting {
	int32_t pid, live_id; /* sf_process_live_id() */
	int32_t root_pid;
	struct sf_images *images;
	SF_VEC(struct sf_region) regions;
	uint64_t vdso;       /* where it is; 0: nowhere */
	const struct sf_image *perf_map; /* once it was looked for; NULL: the process has none */
	bool has_looked;
	bool recorded;       /* the mappings are those that an engine has recorded */
	bool no_memory;
};

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
static const struct sf_image *find_image(const struct collecting *collecting, const struct sf_mapping *mapping)
{
	const struct sf_image_seen seen = { .path = mapping->path, .inode = mapping->inode, .device = mapping->device };

	if (mapping->path[0] != '/' && strcmp(mapping->path, SF_VDSO) != 0)
		return NULL;
	return collecting->recorded ? sf_images_add(collecting->images, collecting->root_pid, &seen)
				: sf_images_find(collecting->images, collecting->live_id, mapping);
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
static void place_perf_map(struct collecting *collecting, struct sf_region *region)
{
	if (!collecting->has_looked)
		collecting->perf_map = sf_perf_map_file(collecting->images, collecting->pid);
	collecting->has_looked = true;
	if (collecting->perf_map)
		region->image = collecting->perf_map->number;
}

/* A program may also map a file in memory (memfd_create(2)), which is an ELF file then. */
static void place(struct collecting *collecting, struct sf_region *region, const struct sf_mapping *mapping)
{
	const struct sf_image *image = find_image(collecting, mapping);
	uint64_t address;

	if (image && (!is_shared_memory(mapping) || sf_image_address(image, mapping->offset, &address)))
		place_image(region, image, mapping);
	else
		place_perf_map(collecting, region);
}

static bool collect(const struct sf_mapping *mapping, void *arg)
{
	struct collecting *collecting = arg;
	struct sf_region region = { .start = mapping->start, .end = mapping->end };

	/* The legacy vsyscall page is no memory that can be read, and holds no frames. */
	if (!mapping->executable || strcmp(mapping->path, "[vsyscall]") == 0)
		return true;
	if (strcmp(mapping->path, SF_VDSO) == 0)
		collecting->vdso = mapping->start;
	place(collecting, &region, mapping);
	if (collecting->regions.n >= MAX_REGIONS || !sf_vec_push(&collecting->regions, region)) {
		collecting->no_memory = true;
		return false;
	}
	return true;
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

static struct sf_code_map *make_map(const struct collecting *collecting,
				    const struct sf_process *process)
{
	size_t n = collecting->regions.n;
	struct sf_code_map *map = malloc(sizeof(*map) + n * sizeof(map->regions[0]));

	if (!map)
		return NULL;
	show_runtimes(process, map);
	map->n_regions = n;
	map->pops_return = false;
	for (size_t i = 0; i < n; i++) {
		struct sf_region *region = &map->regions[i];

		*region = collecting->regions.items[i];
		if (region->image) {
			const struct sf_image *image =
				sf_images_get(collecting->images, region->image);

			region->table = image->table.header ? &image->table : NULL;
			map->pops_return |= region->table && region->table->header->flags & SF_TABLE_POPS_RETURN;
		}
	}
	return map;
}

static int by_start(const void *left, const void *right)
{
	const struct sf_recorded_mapping *a = left, *b = right;

	return (a->mapping.start > b->mapping.start) - (a->mapping.start < b->mapping.start);
}

static int by_region(const void *left, const void *right)
{
	const struct sf_region *a = left, *b = right;

	return (a->start > b->start) - (a->start < b->start);
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
static void keep_known(const struct sf_process *process, struct collecting *collecting)
{
	for (size_t i = 0; i < process->map->n_regions; i++) {
		if (!is_recorded(process, &process->map->regions[i]) && !sf_vec_push(&collecting->regions, process->map->regions[i]))
			collecting->no_memory = true;
	}
	qsort(collecting->regions.items, collecting->regions.n, sizeof(*collecting->regions.items), by_region);
}

/* Regions are in the order of their addresses. False: nothing is known. */
static bool collect_recorded(struct sf_process *process, struct collecting *collecting)
{
	if (!process->recorded.n || collecting->no_memory)
		return false;
	collecting->recorded = true;
	collecting->regions.n = 0;
	qsort(process->recorded.items, process->recorded.n, sizeof(*process->recorded.items), by_start);
	for (size_t i = 0; i < process->recorded.n; i++) {
		process->recorded.items[i].mapping.path = process->recorded.items[i].path;
		if (!collect(&process->recorded.items[i].mapping, collecting))
			break;
	}
	process->map_is_inherited &= !sf_recorded_vdso(process);
	if (process->map && (!process->map_is_recorded || process->map_is_inherited))
		keep_known(process, collecting);
	return true;
}

/* Whether the list has code there. It is in the order of addresses. */
static bool is_listed(const struct collecting *collecting, size_t n, const struct sf_mapping *mapping)
{
	size_t first = 0;

	for (size_t behind = n; first < behind;) {
		const size_t middle = first + (behind - first) / 2;

		if (collecting->regions.items[middle].end <= mapping->start)
			first = middle + 1;
		else
			behind = middle;
	}
	return first < n && collecting->regions.items[first].start < mapping->end;
}

/*
 * Files that were mapped by a record, and are no longer in the list: samples of before are in them. There is a record of whatever
 * takes their place.
 */
static void add_gone(const struct sf_process *process, struct collecting *collecting)
{
	const size_t n = collecting->regions.n;

	collecting->recorded = true;
	for (size_t i = 0; i < process->recorded.n; i++) {
		struct sf_mapping mapping = process->recorded.items[i].mapping;

		mapping.path = process->recorded.items[i].path;
		if (mapping.path[0] == '/' && !is_listed(collecting, n, &mapping) && !collect(&mapping, collecting))
			break;
	}
	collecting->recorded = false;
	if (collecting->regions.n > n)
		qsort(collecting->regions.items, collecting->regions.n, sizeof(*collecting->regions.items), by_region);
}

/*
 * Whether the map that was read is of a program which the process has executed since. The engine has a record of that,
 * too; the stacks that come before it are of the program whose mappings were recorded.
 */
static bool is_of_next_program(const struct sf_process *process, const struct collecting *collecting)
{
	const struct sf_recorded_mapping *vdso = sf_recorded_vdso(process);

	return vdso && vdso->mapping.start != collecting->vdso;
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

bool sf_process_refresh(struct sf_process *process, struct sf_images *images, struct sf_error *err)
{
	struct collecting collecting = {
		.pid = process->pid,
		.live_id = sf_process_live_id(process->pid),
		.root_pid = process->root_pid,
		.images = images,
	};
	struct sf_code_map *map = NULL;
	uint64_t start_ns = sf_raw_thread_cpu_ns(), load_ns = 0;
	bool read = sf_process_maps(collecting.live_id, collect, &collecting, err);

	/* The list of a process that has ended, and that its parent has not waited for, is empty: what was known stays. */
	if (!read || !collecting.regions.n || is_of_next_program(process, &collecting))
		read = collect_recorded(process, &collecting) || (read && !process->map);
	else
		add_gone(process, &collecting);
	if (read) {
		load_ns = sf_raw_thread_cpu_ns();
		sf_images_load(images);
		load_ns = sf_raw_thread_cpu_ns() - load_ns;
		map = make_map(&collecting, process);
	}
	sf_vec_deinit(&collecting.regions);
	process->refreshed_ns = sf_now_ns();
	process->is_outdated = false;
	process->n_at_once -= process->n_at_once > 0;
	process->load_cost_ns = load_ns;
	process->refresh_cost_ns = sf_raw_thread_cpu_ns() - start_ns - load_ns;
	if (collecting.no_memory || (read && !map))
		return sf_fail_memory(err);
	if (!read)
		return false;
	process->map_is_inherited &= collecting.recorded;
	process->map_is_recorded = collecting.recorded && (!process->map || is_empty(process) || process->map_is_recorded);
	free(process->map);
	process->map = map;
	process->vdso = collecting.vdso;
	return true;
}

/* Another program is in the process by now: what was the map's first code is no longer there. */
static bool is_replaced(const struct sf_process *process)
{
	char byte;

	return sf_process_map_is_read(process) &&
	       !sf_process_read(sf_process_live_id(process->pid), &byte, process->map->regions[0].start, 1);
}

uint64_t sf_process_refresh_pause_ns(const struct sf_process *process, uint64_t now_ns)
{
	const bool young = now_ns - process->since_ns < YOUNG_NS;
	const uint64_t pause_ns = process->refresh_cost_ns * (young ? YOUNG_SHARE : REFRESH_SHARE) + process->load_cost_ns;

	if (young)
		return process->n_at_once ? 0 : pause_ns;
	return pause_ns > REFRESH_MIN_NS ? pause_ns : REFRESH_MIN_NS;
}

bool sf_process_refresh_stale(struct sf_process *process, struct sf_images *images)
{
	const uint64_t now_ns = sf_now_ns();
	const uint64_t age_ns = now_ns - process->refreshed_ns;

	if (process->map && !process->is_outdated && age_ns < sf_process_refresh_pause_ns(process, now_ns)) {
		if (age_ns < REPLACED_MIN_NS || !is_replaced(process))
			return false;
		process->since_ns = now_ns;
		process->n_at_once = N_AT_ONCE;
	}
	return sf_process_refresh(process, images, NULL);
}
