/* SPDX-License-Identifier: Apache-2.0 */
/* Reads CoreCLR's description of itself into the layout that the walker uses, and checks that it is sufficient. */
#include "runtime/coreclr/description.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/coreclr/json.h"

#define MAGIC UINT64_C(0x0043414443434e44)   /* "DNCCDAC" */
#define IS_32_BIT 2u
#define MAX_JSON (1u << 20)
#define MAX_POINTERS 4096u
#define MAX_OFFSET 32768u

struct descriptor {
	uint64_t magic;
	uint32_t flags, json_size;
	uint64_t json;
	uint32_t n_pointers, reserved;
	uint64_t pointers;
};

static const struct {
	const char *type, *field;
} field_names[SF_CLR_N_FIELDS] = {
#define X(name, type, field) { type, field },
	SF_CLR_FIELDS(X)
#undef X
};

static const char *const size_names[SF_CLR_N_SIZES] = {
#define X(name, type) type,
	SF_CLR_SIZES(X)
#undef X
};

static const char *const frame_names[SF_CLR_N_FRAMES] = {
#define X(name, global, how) global,
	SF_CLR_FRAMES(X)
#undef X
};

/* The variables whose addresses are taken. To add one: add a line. */
static const struct {
	const char *name;
	size_t offset;             /* in struct sf_clr_description */
} variables[] = {
	{ "ExecutionManagerCodeRangeMapAddress", offsetof(struct sf_clr_description, range_map) },
	{ "ThreadStore", offsetof(struct sf_clr_description, thread_store) },
	{ "FinalizerThread", offsetof(struct sf_clr_description, finalizer) },
	{ "AppDomain", offsetof(struct sf_clr_description, domain) },
	{ "SyncTableEntries", offsetof(struct sf_clr_description, sync_table) },
	{ "GCThread", offsetof(struct sf_clr_description, suspender) },
};

/*
 * The fields that are needed. `lost`: the feature that is missing without this field; NULL: no frame can be walked. To
 * add a need: add a line.
 */
static const struct need {
	uint16_t field;
	const char *lost;
} needs[] = {
	{ SF_CLR_MAP_TOP, NULL },
	{ SF_CLR_FRAGMENT_NEXT, NULL },
	{ SF_CLR_FRAGMENT_SECTION, NULL },
	{ SF_CLR_SECTION_BEGIN, NULL },
	{ SF_CLR_SECTION_END, NULL },
	{ SF_CLR_SECTION_FLAGS, NULL },
	{ SF_CLR_SECTION_HEAPS, NULL },
	{ SF_CLR_SECTION_MODULE, NULL },
	{ SF_CLR_HEAP_BASE, NULL },
	{ SF_CLR_HEAP_END, NULL },
	{ SF_CLR_HEAP_MAP, NULL },
	{ SF_CLR_HEADER_METHOD, NULL },
	{ SF_CLR_HEADER_N_UNWIND, NULL },
	{ SF_CLR_HEADER_UNWIND, NULL },
	{ SF_CLR_MODULE_READY, NULL },
	{ SF_CLR_READY_FUNCTIONS, NULL },
	{ SF_CLR_READY_N_FUNCTIONS, NULL },
	{ SF_CLR_READY_METHODS, "names of precompiled methods" },
	{ SF_CLR_HASH_BUCKETS, "names of precompiled methods" },
	{ SF_CLR_METHOD_FLAGS3, "names" },
	{ SF_CLR_METHOD_INDEX, "names" },
	{ SF_CLR_METHOD_FLAGS, "names" },
	{ SF_CLR_CHUNK_TABLE, "names" },
	{ SF_CLR_CHUNK_FLAGS, "names" },
	{ SF_CLR_TABLE_MODULE, "names" },
	{ SF_CLR_DYNAMIC_NAME, "names of dynamic methods" },
	{ SF_CLR_TABLE_ARGUMENTS, "generic arguments, and the awaiters of async methods" },
	{ SF_CLR_GENERIC_ARGUMENTS, "generic arguments, and the awaiters of async methods" },
	{ SF_CLR_VERSION_CODE, "tiers" },
	{ SF_CLR_THREAD_OS_ID, "the thread's own records" },
	{ SF_CLR_THREAD_LINK, "the thread's own records" },
	{ SF_CLR_STORE_FIRST, "the thread's own records" },
	{ SF_CLR_THREAD_OBJECT, "names of threads" },
	{ SF_CLR_CLASS_FIELDS, "names of threads" },
	{ SF_CLR_THREAD_FRAME, "managed frames below native ones that cannot be walked" },
	{ SF_CLR_FRAME_NEXT, "managed frames below native ones that cannot be walked" },
};

/* A description that is being read. */
struct reading {
	const struct sf_reader *memory;
	struct descriptor descriptor;
	struct sf_clr_description *ret;
	bool is_foreign;           /* of another processor, or relative to a table that is not known */
	bool is_unread;            /* a pointer of its table could not be read */
};

/*
 * A library's file is mapped before the addresses in it are relocated. Until then what they lead to cannot be read: a later attempt
 * may find it.
 */
static bool fail_not_there(struct sf_error *err)
{
	return sf_fail(err, SF_E_GONE, "its description of itself is not there yet");
}

static void read_type(struct reading *reading, const struct sf_clr_json_value *value)
{
	struct sf_clr_layout *layout = &reading->ret->layout;
	uint64_t number;

	/* An offset, or [offset, "type"]. */
	if (value->n_names != 3 || value->n_arrays > 1 || value->index ||
	    !sf_clr_json_number(value, &number) || number >= MAX_OFFSET)
		return;
	for (unsigned i = 0; i < SF_CLR_N_FIELDS; i++) {
		if (sf_clr_json_text_is(&value->names[1], field_names[i].type) &&
		    sf_clr_json_text_is(&value->names[2], field_names[i].field))
			layout->fields[i] = (uint16_t)number;
	}
	for (unsigned i = 0; i < SF_CLR_N_SIZES && sf_clr_json_text_is(&value->names[2], "!"); i++) {
		if (sf_clr_json_text_is(&value->names[1], size_names[i]))
			layout->sizes[i] = (uint16_t)number;
	}
}

/* A number, or an entry of the table of pointers: [[n], "type"], or [n]. */
static bool global_value(struct reading *reading, const struct sf_clr_json_value *value, uint64_t *ret)
{
	const bool indirect = value->n_arrays == 2 || (value->n_arrays == 1 && value->is_only &&
						       !value->is_string);

	if (value->index || !sf_clr_json_number(value, ret))
		return false;
	if (!indirect)
		return true;
	if (*ret >= reading->descriptor.n_pointers || *ret >= MAX_POINTERS)
		return false;
	if (sf_read_u64(reading->memory, reading->descriptor.pointers + *ret * 8, ret))
		return true;
	reading->is_unread = true;
	return false;
}

static void read_global(struct reading *reading, const struct sf_clr_json_value *value)
{
	struct sf_clr_description *ret = reading->ret;
	const struct sf_clr_json_text *name = &value->names[1];
	uint64_t number;

	if (sf_clr_json_text_is(name, "Architecture") && value->is_string && !value->index &&
	    !sf_clr_json_text_is(&value->text, "x64"))
		reading->is_foreign = true;
	if (value->n_names != 2 || !global_value(reading, value, &number))
		return;
	for (unsigned i = 0; i < SF_CLR_N_FRAMES; i++) {
		if (sf_clr_json_text_is(name, frame_names[i]))
			ret->layout.frames[i] = number;
	}
	for (size_t i = 0; i < sizeof(variables) / sizeof(variables[0]); i++) {
		if (sf_clr_json_text_is(name, variables[i].name))
			memcpy((char *)ret + variables[i].offset, &number, sizeof(number));
	}
	if (sf_clr_json_text_is(name, "StubCodeBlockLast") && number < 4096)
		ret->layout.last_stub_kind = (uint32_t)number;
	else if (sf_clr_json_text_is(name, "MethodDescTokenRemainderBitCount") && number <= 16)
		ret->token_bits = (unsigned)number;
	else if (sf_clr_json_text_is(name, "MethodDescAlignment") && number && number <= 64)
		ret->layout.method_alignment = (uint8_t)number;
}

static void read_contract(struct sf_clr_description *ret, const struct sf_clr_json_value *value)
{
	uint64_t number;

	if (value->n_names != 2 || !sf_clr_json_number(value, &number) || number > UINT32_MAX)
		return;
	if (sf_clr_json_text_is(&value->names[1], "ExecutionManager"))
		ret->execution = (uint32_t)number;
}

static void read_value(void *arg, const struct sf_clr_json_value *value)
{
	struct reading *reading = arg;

	if (!value->n_names)
		return;
	if (sf_clr_json_text_is(&value->names[0], "baseline") && !sf_clr_json_text_is(&value->text, "empty"))
		reading->is_foreign = true;
	else if (sf_clr_json_text_is(&value->names[0], "types"))
		read_type(reading, value);
	else if (value->n_names > 1 && sf_clr_json_text_is(&value->names[0], "globals"))
		read_global(reading, value);
	else if (sf_clr_json_text_is(&value->names[0], "contracts"))
		read_contract(reading->ret, value);
}

static bool read_json(struct reading *reading, struct sf_error *err)
{
	const size_t size = reading->descriptor.json_size;
	char *text = malloc(size);
	bool is_read, is_good;

	if (!text)
		return sf_fail_memory(err);
	is_read = sf_read(reading->memory, text, reading->descriptor.json, size);
	is_good = is_read && sf_clr_json_read(text, size, read_value, reading);
	free(text);
	if (!is_read || reading->is_unread)
		return fail_not_there(err);
	return is_good || sf_fail(err, SF_E_UNSUPPORTED, "its description of itself cannot be read");
}

static bool read_descriptor(struct reading *reading, uint64_t address, struct sf_error *err)
{
	struct descriptor *descriptor = &reading->descriptor;

	if (!sf_read(reading->memory, descriptor, address, sizeof(*descriptor)))
		return fail_not_there(err);
	if (descriptor->magic != MAGIC || !(descriptor->flags & 1) ||
	    descriptor->flags & IS_32_BIT || !descriptor->json_size ||
	    descriptor->json_size > MAX_JSON)
		return sf_fail(err, SF_E_UNSUPPORTED, "its description of itself has an unknown form");
	return true;
}

static void check_needs(struct sf_clr_description *ret, const char **missing_ret)
{
	const char *last = "";
	size_t n = 0;

	for (size_t i = 0; i < sizeof(needs) / sizeof(needs[0]); i++) {
		const struct need *need = &needs[i];
		const char *name = field_names[need->field].field;

		if (sf_clr_has(&ret->layout, need->field))
			continue;
		if (!need->lost) {
			*missing_ret = name;
		} else if (strcmp(last, need->lost) != 0 && n < sizeof(ret->note)) {
			n += (size_t)snprintf(ret->note + n, sizeof(ret->note) - n,
					      "%s%s (no %s.%s)", n ? "; " : "without ", need->lost,
					      field_names[need->field].type, name);
			last = need->lost;
		}
	}
}

bool sf_clr_check_description(struct sf_clr_description *ret, struct sf_error *err)
{
	const char *missing = NULL;

	check_needs(ret, &missing);
	if (missing)
		return sf_fail(err, SF_E_UNSUPPORTED, "its description of itself lacks %s", missing);
	if (ret->execution != 1 && ret->execution != 2)
		return sf_fail(err, SF_E_UNSUPPORTED,
			       "its code manager has version %u, only 1 and 2 are known",
			       ret->execution);
	if (!ret->range_map)
		return sf_fail(err, SF_E_UNSUPPORTED, "its description of itself lacks the range map");
	ret->layout.nibble_map = (uint8_t)ret->execution;
	return true;
}

bool sf_clr_is_descriptor(const struct sf_reader *memory, uint64_t address)
{
	uint64_t magic;

	return sf_read_u64(memory, address, &magic) && magic == MAGIC;
}

bool sf_clr_describe(const struct sf_reader *memory, uint64_t address,
		     struct sf_clr_description *ret, struct sf_error *err)
{
	struct reading reading = { .memory = memory, .ret = ret };

	*ret = (struct sf_clr_description){ .layout.method_alignment = 8, .patchpoint_n = 16, .patchpoint_size = 40 };
	memset(ret->layout.fields, 0xff, sizeof(ret->layout.fields));
	if (!address)
		return true;
	if (!read_descriptor(&reading, address, err) || !read_json(&reading, err))
		return false;
	if (reading.is_foreign)
		return sf_fail(err, SF_E_UNSUPPORTED,
			       "its description of itself is for another processor, or names a table that is not known");
	return true;
}
