/* SPDX-License-Identifier: Apache-2.0 */
/* The code map of a watched process, and the rules for when the map is renewed. */
#include "target/process.h"

#include <stdlib.h>
#include <string.h>

#include "base/vec.h"
#include "frozen/raw.h"
#include "os/clock.h"

#define MAX_REGIONS 1000000
#define REFRESH_SHARE 20
#define REFRESH_MIN_NS 10000000
#define YOUNG_NS 1000000000
#define YOUNG_SHARE 3

struct collecting {
	int32_t pid;
	struct sf_images *images;
	SF_VEC(struct sf_region) regions;
	bool no_memory;
};

void sf_process_init(struct sf_process *process, int32_t pid)
{
	*process = (struct sf_process){ .pid = pid, .arch = sf_process_arch(sf_process_live_id(pid)),
					.since_ns = sf_now_ns() };
	if (!process->arch)
		process->arch = sf_arch_host();
}

void sf_process_deinit(struct sf_process *process)
{
	free(process->map);
	process->map = NULL;
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

static bool collect(const struct sf_mapping *mapping, void *arg)
{
	struct collecting *collecting = arg;
	struct sf_region region = { .start = mapping->start, .end = mapping->end };

	/* The legacy vsyscall page is no memory that can be read, and holds no frames. */
	if (!mapping->executable || strcmp(mapping->path, "[vsyscall]") == 0)
		return true;
	if (mapping->path[0] == '/' || strcmp(mapping->path, "[vdso]") == 0) {
		const struct sf_image *image =
			sf_images_find(collecting->images, collecting->pid, mapping);

		if (image)
			place_image(&region, image, mapping);
	}
	if (collecting->regions.n >= MAX_REGIONS || !sf_vec_push(&collecting->regions, region)) {
		collecting->no_memory = true;
		return false;
	}
	return true;
}

void sf_process_add_runtime(struct sf_process *process, const struct sf_runtime *runtime)
{
	if (process->n_runtimes < SF_MAX_RUNTIMES)
		process->runtimes[process->n_runtimes++] = runtime;
}

static void show_runtimes(const struct sf_process *process, struct sf_code_map *map)
{
	memcpy(map->runtimes, process->runtimes, sizeof(map->runtimes));
	map->n_runtimes = process->n_runtimes;
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
	for (size_t i = 0; i < n; i++) {
		struct sf_region *region = &map->regions[i];

		*region = collecting->regions.items[i];
		if (region->image) {
			const struct sf_image *image =
				sf_images_get(collecting->images, region->image);

			region->table = image->table.header ? &image->table : NULL;
		}
	}
	return map;
}

bool sf_process_refresh(struct sf_process *process, struct sf_images *images, struct sf_error *err)
{
	struct collecting collecting = {
		.pid = sf_process_live_id(process->pid),
		.images = images,
	};
	struct sf_code_map *map = NULL;
	uint64_t start_ns = sf_raw_thread_cpu_ns(), load_ns = 0;
	bool read = sf_process_maps(collecting.pid, collect, &collecting, err);

	if (read) {
		load_ns = sf_raw_thread_cpu_ns();
		sf_images_load(images);
		load_ns = sf_raw_thread_cpu_ns() - load_ns;
		map = make_map(&collecting, process);
	}
	sf_vec_deinit(&collecting.regions);
	process->refreshed_ns = sf_now_ns();
	process->load_cost_ns = load_ns;
	process->refresh_cost_ns = sf_raw_thread_cpu_ns() - start_ns - load_ns;
	if (collecting.no_memory || (read && !map))
		return sf_fail_memory(err);
	if (!read)
		return false;
	free(process->map);
	process->map = map;
	return true;
}

bool sf_process_refresh_stale(struct sf_process *process, struct sf_images *images)
{
	bool young = sf_now_ns() - process->since_ns < YOUNG_NS;
	uint64_t pause_ns = process->refresh_cost_ns * (young ? YOUNG_SHARE : REFRESH_SHARE) +
			    process->load_cost_ns;

	if (!young && pause_ns < REFRESH_MIN_NS)
		pause_ns = REFRESH_MIN_NS;
	if (process->map && sf_now_ns() - process->refreshed_ns < pause_ns)
		return false;
	return sf_process_refresh(process, images, NULL);
}
