/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads CoreCLR's range map: a radix tree of five levels, whose leaves are lists of fragments, each of which names a
 * range section (src/coreclr/vm/codeman.h in dotnet/runtime: RangeSectionMap).
 */
#include "runtime/coreclr/range_map.h"

#include <string.h>

#include "base/block.h"
#include "base/search.h"

#define LEVELS 5
#define FAN_OUT 256u
#define MAX_NODES 65536u
#define MAX_FRAGMENTS 1048576u
#define MAX_LIST 4096u            /* fragments in one leaf */
#define MAX_RANGES 262144u
#define MAX_FUNCTIONS (8u << 20)  /* of all images: a program with all of ASP.NET Core has less than a million */
#define LEAF_MARK UINT64_C(1)     /* in pointers: something collectible is below */

#define IS_COLLECTIBLE 1u         /* RangeSection.Flags */
#define IS_CODE_HEAP 2u
#define IS_STUB_LIST 4u

#define READY_MAGIC 0x00525452u   /* "RTR" */
#define STUB_LIST 48u             /* RangeSection: the list of stubs' ranges, and their kind in it. No descriptor */
#define STUB_LIST_KIND 0x120u     /* of .NET 10 says so; a kind that is not one is dropped */

struct ranges {
	SF_VEC(struct sf_clr_range) items;
};

/* One reading of the map. */
struct reading {
	const struct sf_clr_description *description;
	const struct sf_reader *memory;
	struct sf_clr_images *images;
	struct ranges ranges;
	uint64_t last_section;
	uint32_t n_nodes, n_fragments;
	bool no_memory;
};

void sf_clr_images_deinit(struct sf_clr_images *images)
{
	for (size_t i = 0; i < images->items.n; i++)
		sf_block_free(images->items.items[i].copy);
	sf_vec_deinit(&images->items);
}

static bool get(const struct reading *reading, enum sf_clr_field field, uint64_t base, uint64_t *ret)
{
	return sf_clr_get(&reading->description->layout, reading->memory, field, base, ret);
}

static bool ascend(const struct sf_clr_functions *functions)
{
	for (uint32_t i = 1; i < functions->n; i++) {
		if (functions->items[i].begin < functions->items[i - 1].begin)
			return false;
	}
	return true;
}

static struct sf_clr_functions *copy_functions(struct sf_clr_images *images, const struct sf_reader *memory, uint64_t at,
					       uint32_t n)
{
	struct sf_clr_functions *copy;

	if (!n || n > MAX_FUNCTIONS - images->n_functions)
		return NULL;
	images->n_functions += n;
	copy = sf_block_new(sizeof(*copy) + n * sizeof(copy->items[0]));
	if (!copy)
		return NULL;
	copy->n = n;
	if (sf_read(memory, copy->items, at, n * sizeof(copy->items[0])) && ascend(copy))
		return copy;
	sf_block_free(copy);
	return NULL;
}

static const struct sf_clr_functions *find_functions(struct reading *reading, uint64_t ready)
{
	struct sf_clr_precompiled found = { .ready = ready };
	uint32_t n;

	if (!get(reading, SF_CLR_READY_FUNCTIONS, ready, &found.functions) ||
	    !sf_clr_get_u32(&reading->description->layout, reading->memory, SF_CLR_READY_N_FUNCTIONS,
			    ready, &n))
		return NULL;
	for (size_t i = 0; i < reading->images->items.n; i++) {
		const struct sf_clr_precompiled *known = &reading->images->items.items[i];

		if (known->ready == ready && known->functions == found.functions)
			return known->copy;
	}
	if (reading->images->items.n >= SF_CLR_MAX_IMAGES)
		return NULL;
	found.copy = copy_functions(reading->images, reading->memory, found.functions, n);
	if (!sf_vec_push(&reading->images->items, found)) {
		sf_block_free(found.copy);
		reading->no_memory = true;
		return NULL;
	}
	return found.copy;
}

static bool is_ready_header(const struct reading *reading, uint64_t ready)
{
	uint64_t header;
	uint32_t magic;

	if (!sf_clr_has(&reading->description->layout, SF_CLR_READY_HEADER))
		return true;
	return get(reading, SF_CLR_READY_HEADER, ready, &header) &&
	       sf_read(reading->memory, &magic, header, sizeof(magic)) && magic == READY_MAGIC;
}

/* The directory of thunks: { RVA, size }. */
static void add_thunks(const struct reading *reading, struct sf_clr_range *range)
{
	uint64_t at;
	uint32_t directory[2];

	if (!get(reading, SF_CLR_READY_THUNKS, range->ready, &at) || !at ||
	    !sf_read(reading->memory, directory, at, sizeof(directory)))
		return;
	range->thunks = range->base + directory[0];
	range->thunks_end = range->thunks + directory[1];
}

static bool read_precompiled(struct reading *reading, uint64_t module, struct sf_clr_range *range)
{
	uint64_t ready, composite;

	if (!get(reading, SF_CLR_MODULE_READY, module, &ready) || !ready)
		return false;
	/* Composite images have one table; it is the image's own, where it is not composite. */
	if (get(reading, SF_CLR_READY_COMPOSITE, ready, &composite) && composite)
		ready = composite;
	if (!is_ready_header(reading, ready))
		return false;
	range->code = SF_CLR_CODE_PRECOMPILED;
	range->ready = ready;
	range->functions = find_functions(reading, ready);
	add_thunks(reading, range);
	return range->functions != NULL;
}

static void read_stubs(const struct reading *reading, uint64_t section, struct sf_clr_range *range)
{
	uint64_t list;
	uint32_t kind;

	range->code = SF_CLR_CODE_STUBS;
	if (sf_read_u64(reading->memory, section + STUB_LIST, &list) &&
	    sf_read(reading->memory, &kind, list + STUB_LIST_KIND, sizeof(kind)) &&
	    kind <= reading->description->layout.last_stub_kind)
		range->stub_kind = (uint16_t)kind;
}

/* The contents of a section. False: it is dying, or of an unknown kind. */
static bool read_section(struct reading *reading, uint64_t section, struct sf_clr_range *range)
{
	const struct sf_clr_layout *layout = &reading->description->layout;
	uint64_t module = 0, dying = 0;
	uint32_t flags;

	*range = (struct sf_clr_range){ 0 };
	if (!get(reading, SF_CLR_SECTION_BEGIN, section, &range->base) ||
	    !get(reading, SF_CLR_SECTION_END, section, &range->region.end) ||
	    !sf_clr_get_u32(layout, reading->memory, SF_CLR_SECTION_FLAGS, section, &flags) ||
	    !get(reading, SF_CLR_SECTION_MODULE, section, &module))
		return false;
	if (get(reading, SF_CLR_SECTION_DYING, section, &dying) && dying)
		return false;
	range->region.start = range->base;
	range->is_collectible = flags & IS_COLLECTIBLE;
	if (range->region.start >= range->region.end)
		return false;
	if (module)
		return read_precompiled(reading, module, range);
	if (flags & IS_CODE_HEAP) {
		range->code = SF_CLR_CODE_JITTED;
		return get(reading, SF_CLR_SECTION_HEAPS, section, &range->heap) && range->heap;
	}
	if (!(flags & IS_STUB_LIST))
		return false;
	read_stubs(reading, section, range);
	return true;
}

static void add_section(struct reading *reading, uint64_t section)
{
	struct sf_clr_range range;

	if (section == reading->last_section || reading->ranges.items.n >= MAX_RANGES)
		return;
	reading->last_section = section;
	if (read_section(reading, section, &range) && !sf_vec_push(&reading->ranges.items, range))
		reading->no_memory = true;
}

static void read_fragments(struct reading *reading, uint64_t fragment)
{
	uint64_t section;

	for (unsigned i = 0; fragment && i < MAX_LIST; i++) {
		if (reading->n_fragments++ >= MAX_FRAGMENTS ||
		    !get(reading, SF_CLR_FRAGMENT_SECTION, fragment, &section))
			return;
		add_section(reading, section);
		if (!get(reading, SF_CLR_FRAGMENT_NEXT, fragment, &fragment))
			return;
		fragment &= ~LEAF_MARK;
	}
}

/* A node of the tree: its entries lead to nodes of the next level, and those of the last level to fragments. */
static void read_node(struct reading *reading, uint64_t node, unsigned level)
{
	uint64_t entries[FAN_OUT];

	if (reading->n_nodes++ >= MAX_NODES || !sf_read(reading->memory, entries, node, sizeof(entries)))
		return;
	for (unsigned i = 0; i < FAN_OUT && !reading->no_memory; i++) {
		const uint64_t next = entries[i] & ~LEAF_MARK;

		if (next && level + 1 < LEVELS)
			read_node(reading, next, level + 1);
		else if (next)
			read_fragments(reading, next);
	}
}

static int by_start(const void *a, const void *b)
{
	const struct sf_clr_range *left = a, *right = b;

	return left->region.start != right->region.start ? sf_order(left->region.start, right->region.start)
							 : sf_order(right->region.end, left->region.end);
}

/* By start, none twice, none in another one. */
static void sort(struct ranges *ranges)
{
	size_t n = 0;

	if (ranges->items.n)
		qsort(ranges->items.items, ranges->items.n, sizeof(ranges->items.items[0]), by_start);
	for (size_t i = 0; i < ranges->items.n; i++) {
		if (n && ranges->items.items[i].region.start < ranges->items.items[n - 1].region.end)
			continue;
		ranges->items.items[n++] = ranges->items.items[i];
	}
	ranges->items.n = n;
}

/* Memory that is mapped executable for code that is made at run time: CoreCLR's own, and anonymous memory. */
static bool is_space(const struct sf_region *region, struct sf_images *files)
{
	return !region->image ||
	       strncmp(sf_images_get(files, region->image)->path, "/memfd:doublemapper", 19) == 0;
}

static size_t count_spaces(const struct sf_process *process, struct sf_images *files)
{
	size_t n = 0;

	for (size_t i = 0; process->map && i < process->map->n_regions; i++)
		n += is_space(&process->map->regions[i], files);
	return n;
}

static void fill_spaces(struct sf_coreclr *object, struct sf_region *spaces,
			const struct sf_process *process, struct sf_images *files)
{
	for (size_t i = 0; process->map && i < process->map->n_regions; i++) {
		struct sf_region region = process->map->regions[i];

		if (!is_space(&region, files))
			continue;
		region.runtime = &object->runtime;
		spaces[object->n_spaces++] = region;
	}
	object->spaces = spaces;
}

static void fill_ranges(struct sf_coreclr *object, struct sf_clr_range *ranges,
			const struct ranges *from)
{
	for (size_t i = 0; i < from->items.n; i++) {
		ranges[i] = from->items.items[i];
		ranges[i].region.runtime = &object->runtime;
	}
	object->ranges = ranges;
	object->n_ranges = (uint32_t)from->items.n;
}

static struct sf_coreclr *make_object(const struct sf_clr_description *description,
				      const struct ranges *ranges, const struct sf_process *process,
				      struct sf_images *files, uint32_t slot)
{
	const size_t n_spaces = count_spaces(process, files);
	struct sf_coreclr *object = malloc(sizeof(*object) + n_spaces * sizeof(struct sf_region) +
					   ranges->items.n * sizeof(struct sf_clr_range));
	struct sf_region *spaces;

	if (!object)
		return NULL;
	spaces = (struct sf_region *)(object + 1);
	*object = (struct sf_coreclr){
		.runtime = { .ops = &sf_coreclr_ops, .start = 1, .end = UINT64_MAX, .slot = slot },
		.layout = description->layout,
		.range_map = description->range_map,
	};
	fill_spaces(object, spaces, process, files);
	fill_ranges(object, (struct sf_clr_range *)(spaces + n_spaces), ranges);
	return object;
}

struct sf_coreclr *sf_clr_object_create(const struct sf_clr_description *description,
					const struct sf_reader *memory, struct sf_clr_images *images,
					const struct sf_process *process, struct sf_images *files,
					uint32_t slot)
{
	struct reading reading = { .description = description, .memory = memory, .images = images };
	struct sf_coreclr *object = NULL;

	read_node(&reading, description->range_map + description->layout.fields[SF_CLR_MAP_TOP], 0);
	sort(&reading.ranges);
	if (reading.ranges.items.n && !reading.no_memory)
		object = make_object(description, &reading.ranges, process, files, slot);
	sf_vec_deinit(&reading.ranges.items);
	return object;
}

void sf_clr_object_destroy(struct sf_coreclr *object)
{
	free(object);
}

static bool are_equal(const struct sf_region *a, const struct sf_region *b)
{
	return a->start == b->start && a->end == b->end && a->image == b->image && a->bias == b->bias;
}

bool sf_clr_object_equals(const struct sf_coreclr *a, const struct sf_coreclr *b)
{
	if (a->n_ranges != b->n_ranges || a->n_spaces != b->n_spaces)
		return false;
	for (uint32_t i = 0; i < a->n_spaces; i++) {
		if (!are_equal(&a->spaces[i], &b->spaces[i]))
			return false;
	}
	for (uint32_t i = 0; i < a->n_ranges; i++) {
		const struct sf_clr_range *left = &a->ranges[i], *right = &b->ranges[i];

		if (!are_equal(&left->region, &right->region) || left->code != right->code ||
		    left->heap != right->heap || left->ready != right->ready ||
		    left->base != right->base || left->is_collectible != right->is_collectible)
			return false;
	}
	return true;
}
