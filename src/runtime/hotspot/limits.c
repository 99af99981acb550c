/* SPDX-License-Identifier: Apache-2.0 */
/* The limits of the tables of a libjvm. The numbers are some times those of JDK 8 to 26, to leave room for later ones. */
#include "runtime/hotspot/limits.h"

#include <stddef.h>

#define STATIC 0             /* no offset, but an address */
#define SMALL 4096u          /* bytes of structs without an end that matters */
#define LARGE 65536u         /* of threads and classes */
#define NO_SIZE SF_HS_N_SIZES

/*
 * Fields of one struct each, from the first to the last one in SF_HOTSPOT_FIELDS. `within`: so many bytes from the start
 * of the struct, or STATIC; `size` is that of the struct, where tables tell it. To add a field outside of them: add a line.
 * A field in no line is never there.
 */
static const struct field_limit {
	uint16_t first, last;
	uint32_t within;
	uint16_t size;
} field_limits[] = {
	{ SF_HS_CODE_LOW, SF_HS_CODE_HEAP, STATIC, NO_SIZE },
	{ SF_HS_LIST_LEN, SF_HS_LIST_DATA, SMALL, NO_SIZE },
	{ SF_HS_HEAP_MEMORY, SF_HS_SPACE_COMMITTED, SMALL, NO_SIZE },
	{ SF_HS_BLOCK_USED, SF_HS_BLOCK_USED, SF_HOTSPOT_MAX_BLOCK, SF_HS_SIZE_BLOCK },
	{ SF_HS_CALL_STUB, SF_HS_INTERPRETER, STATIC, NO_SIZE },
	{ SF_HS_QUEUE_BUFFER, SF_HS_QUEUE_END, SMALL, NO_SIZE },
	{ SF_HS_CODELET_TEXT, SF_HS_CODELET_SIZE, SMALL, SF_HS_SIZE_CODELET },
	/* with what is read from there on at once (sf_hotspot_pick): 8 bytes, however wide the field is */
	{ SF_HS_BLOB_NAME, SF_HS_NM_ORIG_PC, SF_HOTSPOT_MAX_BLOB - 7, NO_SIZE },
	{ SF_HS_NM_METADATA, SF_HS_OOP_MAPS_N, SMALL, NO_SIZE },
	{ SF_HS_PC_OFFSET, SF_HS_PC_SCOPE, SMALL, SF_HS_SIZE_PC_DESC },
	{ SF_HS_METHOD_CONST, SF_HS_METHOD_CONST, SMALL, NO_SIZE },
	{ SF_HS_CONST_POOL, SF_HS_CONST_FLAGS, SF_HOTSPOT_MAX_CONST, SF_HS_SIZE_CONST_METHOD },
	{ SF_HS_POOL_LENGTH, SF_HS_POOL_SOURCE, SMALL, SF_HS_SIZE_POOL },
	{ SF_HS_CLASS_SOURCE, SF_HS_CLASS_FIELD_STREAM, LARGE, NO_SIZE },
	{ SF_HS_SYMBOL_LENGTH, SF_HS_SYMBOL_BODY, SMALL, NO_SIZE },
	{ SF_HS_THREADS, SF_HS_THREADS, STATIC, NO_SIZE },
	{ SF_HS_THREADS_LENGTH, SF_HS_THREADS_ITEMS, SMALL, NO_SIZE },
	{ SF_HS_FIRST_THREAD, SF_HS_FIRST_THREAD, STATIC, NO_SIZE },
	{ SF_HS_NEXT_THREAD, SF_HS_THREAD_LAST_VFRAMES, LARGE, NO_SIZE },
	{ SF_HS_VFRAMES_ORIGINAL, SF_HS_VFRAMES_N, LARGE, SF_HS_SIZE_VFRAMES },
	{ SF_HS_VFRAME_METHOD, SF_HS_VFRAME_BCI, SMALL, SF_HS_SIZE_VFRAME },
	{ SF_HS_THREAD_CONTINUATION, SF_HS_THREAD_CONTINUATION, LARGE, NO_SIZE },
	{ SF_HS_CONTINUATION_RETURN, SF_HS_CONTINUATION_RETURN, STATIC, NO_SIZE },
	{ SF_HS_VERSION, SF_HS_VERSION, STATIC, NO_SIZE },
	{ SF_HS_OBJECT_CLASS, SF_HS_OBJECT_CLASS, SMALL, NO_SIZE },
	{ SF_HS_OOP_BASE, SF_HS_N_FLAGS, STATIC, NO_SIZE },
	{ SF_HS_FLAG_NAME, SF_HS_FLAG_ORIGIN, SMALL, SF_HS_SIZE_FLAG },
	{ SF_HS_Z_GLOBALS, SF_HS_Z_GLOBALS, STATIC, NO_SIZE },
	{ SF_HS_Z_SHIFT, SF_HS_Z_BAD, SMALL, NO_SIZE },
	{ SF_HS_RELEASE, SF_HS_RELEASE, STATIC, NO_SIZE },
	{ SF_HS_CLASS_METHODS, SF_HS_CLASS_METHODS, LARGE, NO_SIZE },
	{ SF_HS_THREAD_CLASS, SF_HS_THREAD_CLASS, STATIC, NO_SIZE },
	{ SF_HS_THREAD_PENDING, SF_HS_THREAD_STACK_SIZE, LARGE, NO_SIZE },
	{ SF_HS_MONITOR_OWNER, SF_HS_LOCKS_BASE, SMALL, NO_SIZE },
	{ SF_HS_MIRROR_CLASS, SF_HS_MIRROR_CLASS, STATIC, NO_SIZE },
};

static const uint32_t most_bytes[SF_HS_N_SIZES] = {
	[SF_HS_SIZE_BLOCK] = SF_HOTSPOT_MAX_BLOCK,
	[SF_HS_SIZE_CODELET] = SMALL,
	[SF_HS_SIZE_CONST_METHOD] = SF_HOTSPOT_MAX_CONST,
	[SF_HS_SIZE_POOL] = SMALL,
	[SF_HS_SIZE_PC_DESC] = SMALL,
	[SF_HS_SIZE_VFRAMES] = LARGE,
	[SF_HS_SIZE_VFRAME] = SMALL,
	[SF_HS_SIZE_CONTINUATION] = SMALL,
	[SF_HS_SIZE_FLAG] = SMALL,
};

static const int64_t most[SF_HS_N_NUMBERS] = {
	[SF_HS_NUMBER_HAS_LINES] = INT32_MAX,
	[SF_HS_NUMBER_HEADER_CLASS_SHIFT] = 63,
};

static const uint8_t widths[SF_HS_N_FIELDS] = {
#define X(name, types, fields, width) (width) < 0 ? -(width) : (width),
	SF_HOTSPOT_FIELDS(X)
#undef X
};

static const struct field_limit *limit_of(unsigned field)
{
	for (size_t i = 0; i < sizeof(field_limits) / sizeof(field_limits[0]); i++) {
		if (field >= field_limits[i].first && field <= field_limits[i].last)
			return &field_limits[i];
	}
	return NULL;
}

/* Its struct has a size in any case, if tables tell it: what is left of that comes first. */
static bool is_possible(const struct sf_hotspot *hotspot, unsigned i)
{
	const struct sf_hotspot_field *field = &hotspot->fields[i];
	const struct field_limit *limit = limit_of(i);
	uint64_t within = limit ? limit->within : 0;

	if (!limit || field->is_static != (within == STATIC) ||
	    (widths[i] == sizeof(uint64_t)) != (field->width == sizeof(uint64_t)))
		return false;
	if (limit->size != NO_SIZE && hotspot->sizes[limit->size] && hotspot->sizes[limit->size] < within)
		within = hotspot->sizes[limit->size];
	return field->is_static || (field->width <= within && field->at <= within - field->width);
}

void sf_hotspot_limit(struct sf_hotspot *hotspot)
{
	for (unsigned i = 0; i < SF_HS_N_SIZES; i++) {
		if (hotspot->sizes[i] > most_bytes[i])
			hotspot->sizes[i] = 0;
	}
	for (unsigned i = 0; i < SF_HS_N_FIELDS; i++) {
		if (hotspot->fields[i].width && !is_possible(hotspot, i))
			hotspot->fields[i] = (struct sf_hotspot_field){ 0 };
	}
	for (unsigned i = 0; i < SF_HS_N_NUMBERS; i++) {
		if (hotspot->numbers[i] < 0 || hotspot->numbers[i] > most[i])
			hotspot->numbers[i] = 0;
	}
}
