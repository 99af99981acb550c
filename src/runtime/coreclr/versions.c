/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tables for versions whose description is not complete. g_dacTable has the addresses of the runtime's variables, in
 * the order of src/coreclr/inc/dacvars.h in dotnet/runtime.
 */
#include "runtime/coreclr/versions.h"

#include <stdlib.h>

struct offset {
	uint16_t field, at;
};

/* The same in 8.0.31 and 9.0.20. */
static const struct offset common[] = {
	{ SF_CLR_MAP_TOP, 0 },
	{ SF_CLR_FRAGMENT_NEXT, 0 },
	{ SF_CLR_FRAGMENT_SECTION, 24 },
	{ SF_CLR_SECTION_BEGIN, 0 },
	{ SF_CLR_SECTION_END, 8 },
	{ SF_CLR_SECTION_FLAGS, 16 },
	{ SF_CLR_SECTION_MODULE, 32 },
	{ SF_CLR_SECTION_HEAPS, 40 },
	{ SF_CLR_SECTION_DYING, 64 },
	{ SF_CLR_HEAP_START, 16 },
	{ SF_CLR_HEAP_END, 24 },
	{ SF_CLR_HEAP_BASE, 32 },
	{ SF_CLR_HEAP_MAP, 40 },
	{ SF_CLR_HEADER_METHOD, 24 },
	{ SF_CLR_HEADER_N_UNWIND, 32 },
	{ SF_CLR_HEADER_UNWIND, 36 },
	{ SF_CLR_READY_HEADER, 16 },
	{ SF_CLR_READY_COMPOSITE, 40 },
	{ SF_CLR_READY_FUNCTIONS, 80 },
	{ SF_CLR_READY_N_FUNCTIONS, 88 },
	{ SF_CLR_READY_COLD, 96 },
	{ SF_CLR_READY_N_COLD, 104 },
	{ SF_CLR_READY_THUNKS, 112 },
	{ SF_CLR_READY_METHODS, 432 },
	{ SF_CLR_HASH_BUCKETS, 16 },
	{ SF_CLR_BUCKET_KEYS, 0 },
	{ SF_CLR_BUCKET_VALUES, 32 },
	{ SF_CLR_METHOD_FLAGS3, 0 },
	{ SF_CLR_METHOD_INDEX, 2 },
	{ SF_CLR_METHOD_FLAGS, 6 },
	{ SF_CLR_CHUNK_TABLE, 0 },
	{ SF_CLR_CHUNK_FLAGS, 18 },
	{ SF_CLR_TABLE_MODULE, 24 },
	{ SF_CLR_STORE_FIRST, 160 },
	{ SF_CLR_TABLE_PARENT, 16 },
	{ SF_CLR_TABLE_CANON, 40 },
	{ SF_CLR_CLASS_FIELDS, 24 },
};

static const struct offset of_8[] = {
	{ SF_CLR_MODULE_READY, 1152 },
	{ SF_CLR_TABLE_FLAGS, 0 },
	{ SF_CLR_TABLE_FLAGS2, 8 },
	{ SF_CLR_TABLE_ARGUMENTS, 48 },
	{ SF_CLR_DICTIONARY_N, 4 },
	{ SF_CLR_DICTIONARY_N_ARGUMENTS, 6 },
	{ SF_CLR_GENERIC_ARGUMENTS, 16 },
	{ SF_CLR_GENERIC_N_ARGUMENTS, 26 },
	{ SF_CLR_MODULE_NAME, 0x108 },
	{ SF_CLR_DYNAMIC_NAME, 24 },
	{ SF_CLR_THREAD_STATE, 8 },
	{ SF_CLR_THREAD_LINK, 232 },
	{ SF_CLR_THREAD_OS_ID, 424 },
	{ SF_CLR_THREAD_OBJECT, 432 },
};

static const struct offset of_9[] = {
	{ SF_CLR_MODULE_READY, 984 },
	{ SF_CLR_DICTIONARY_N, 4 },
};

#define OFFSETS(table) table, sizeof(table) / sizeof(table[0])

/* To add a version: add a line, and its table above. */
static const struct version {
	unsigned major;
	const struct offset *offsets;
	size_t n;
	struct entries {
		unsigned range_map, thread_store, finalizer, suspender, domain, sync_table;
	} entries;                          /* of variables in g_dacTable */
	uint8_t token_bits, patchpoint_n, patchpoint_size;
	bool has_short_rows;
} versions[] = {
	{ 8, OFFSETS(of_8), { 0, 16, 17, 18, 21, 80 }, 12, 8, 32, true },
	{ 9, OFFSETS(of_9), { 0, 16, 17, 18, 21, 82 }, 12, 8, 32, false },
};

unsigned sf_clr_major(const char *version)
{
	const unsigned long major = strtoul(version, NULL, 10);

	return major < 1000 ? (unsigned)major : 0;
}

static void fill(struct sf_clr_layout *layout, const struct offset *offsets, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		if (!sf_clr_has(layout, offsets[i].field))
			layout->fields[offsets[i].field] = offsets[i].at;
	}
}

/* The address of a variable, if it is not known yet; 0: it cannot be read. */
static void find(uint64_t *variable, const struct sf_reader *memory, uint64_t dac_table, unsigned entry)
{
	if (!*variable && dac_table && !sf_read_u64(memory, dac_table + 8 * entry, variable))
		*variable = 0;
}

static void find_variables(const struct entries *entries, const struct sf_reader *memory, uint64_t dac_table,
			   struct sf_clr_description *description)
{
	find(&description->range_map, memory, dac_table, entries->range_map);
	find(&description->thread_store, memory, dac_table, entries->thread_store);
	find(&description->finalizer, memory, dac_table, entries->finalizer);
	find(&description->suspender, memory, dac_table, entries->suspender);
	find(&description->domain, memory, dac_table, entries->domain);
	find(&description->sync_table, memory, dac_table, entries->sync_table);
}

static void complete(const struct version *version, const struct sf_reader *memory, uint64_t dac_table,
		     struct sf_clr_description *description)
{
	struct sf_clr_layout *layout = &description->layout;

	fill(layout, common, sizeof(common) / sizeof(common[0]));
	fill(layout, version->offsets, version->n);
	if (!layout->sizes[SF_CLR_SIZE_CHUNK])
		layout->sizes[SF_CLR_SIZE_CHUNK] = 24;
	if (!layout->last_stub_kind)
		layout->last_stub_kind = 15;
	if (!description->token_bits)
		description->token_bits = version->token_bits;
	description->has_short_rows = version->has_short_rows;
	if (!description->execution)
		description->execution = 1;
	find_variables(&version->entries, memory, dac_table, description);
	description->has_nibble_maps = true; /* of 8 and 9; .NET 10 describes itself */
	description->patchpoint_n = version->patchpoint_n;
	description->patchpoint_size = version->patchpoint_size;
	description->is_completed = true;
}

bool sf_clr_complete(const struct sf_reader *memory, unsigned major, uint64_t dac_table,
		     struct sf_clr_description *description)
{
	for (size_t i = 0; i < sizeof(versions) / sizeof(versions[0]); i++) {
		if (versions[i].major == major) {
			complete(&versions[i], memory, dac_table, description);
			return true;
		}
	}
	return false;
}
