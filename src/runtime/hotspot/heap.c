/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Just enough of Java's objects to follow a reference from one to the next: a class says where the fields of its objects are
 * (HotSpot: oops/oop.hpp, oops/fieldInfo.hpp).
 */
#include "runtime/hotspot/heap.h"

#include <string.h>

#include "runtime/hotspot/flags.h"
#include "runtime/hotspot/metadata.h"
#include "runtime/hotspot/unsigned5.h"

#define MAX_FIELDS 1000
#define MAX_SUPERS 32
#define INJECTED 0x400       /* access flag, up to JDK 20: the name is not in the pool */

/*
 * The references of the generational ZGC are shifted, with colours below; it is an option in 21 and
 * 22, and the only ZGC from 24 on (HotSpot: gc/z/zAddress.hpp).
 */
static void find_colours(struct sf_java_objects *ret, const struct sf_hotspot *hotspot,
			 const struct sf_reader *memory)
{
	uint64_t globals;

	if (sf_java_flag(hotspot, memory, "UseZGC") != 1 ||
	    sf_java_flag(hotspot, memory, "ZGenerational") == 0 ||
	    !sf_hotspot_get(hotspot, memory, SF_HS_Z_GLOBALS, 0, &globals) || !globals ||
	    !sf_hotspot_get(hotspot, memory, SF_HS_Z_SHIFT, globals, &ret->z_shift) ||
	    !sf_hotspot_get(hotspot, memory, SF_HS_Z_BAD, globals, &ret->z_bad))
		ret->z_shift = ret->z_bad = 0;
}

void sf_java_objects_init(struct sf_java_objects *ret, const struct sf_hotspot *hotspot,
			  const struct sf_reader *memory)
{
	uint64_t shift;

	memset(ret, 0, sizeof(*ret));
	ret->compressed_oops = sf_java_flag(hotspot, memory, "UseCompressedOops") != 0;
	ret->compressed_classes = sf_java_flag(hotspot, memory, "UseCompressedClassPointers") != 0;
	ret->compact_headers = sf_java_flag(hotspot, memory, "UseCompactObjectHeaders") == 1;
	find_colours(ret, hotspot, memory);
	sf_hotspot_get(hotspot, memory, SF_HS_OOP_BASE, 0, &ret->oop_base);
	if (sf_hotspot_get(hotspot, memory, SF_HS_OOP_SHIFT, 0, &shift))
		ret->oop_shift = shift & 31;
	sf_hotspot_get(hotspot, memory, SF_HS_CLASS_BASE, 0, &ret->class_base);
	if (sf_hotspot_get(hotspot, memory, SF_HS_CLASS_SHIFT, 0, &shift))
		ret->class_shift = shift & 31;
}

bool sf_java_class_of(const struct sf_java_heap *heap, uint64_t object, uint64_t *ret)
{
	const struct sf_java_objects *objects = heap->objects;
	uint64_t shift = (uint64_t)heap->hotspot->numbers[SF_HS_NUMBER_HEADER_CLASS_SHIFT];
	uint32_t narrow;
	uint64_t header;

	if (objects->compact_headers) {
		if (shift < 8 || shift > 63 || !sf_read_u64(heap->memory, object, &header))
			return false;
		*ret = objects->class_base + (header >> shift << objects->class_shift);
		return true;
	}
	if (!objects->compressed_classes)
		return sf_read_u64(heap->memory, object + 8, ret);
	if (!sf_read(heap->memory, &narrow, object + 8, sizeof(narrow)))
		return false;
	*ret = objects->class_base + ((uint64_t)narrow << objects->class_shift);
	return true;
}

/*
 * A reference of full width. One with stale colours may lead to where an object was: it is not
 * followed.
 */
bool sf_java_wide_reference(const struct sf_java_heap *heap, uint64_t address, uint64_t *ret)
{
	uint64_t shift, bad;

	if (!sf_read_u64(heap->memory, address, ret) || !*ret)
		return false;
	if (!heap->objects->z_shift)
		return true;
	if (!sf_read_u64(heap->memory, heap->objects->z_shift, &shift) || shift > 32 ||
	    !sf_read_u64(heap->memory, heap->objects->z_bad, &bad) || *ret & bad)
		return false;
	*ret >>= shift;
	return true;
}

bool sf_java_reference(const struct sf_java_heap *heap, uint64_t address, uint64_t *ret)
{
	uint32_t narrow;

	if (!heap->objects->compressed_oops)
		return sf_java_wide_reference(heap, address, ret);
	if (!sf_read(heap->memory, &narrow, address, sizeof(narrow)) || !narrow)
		return false;
	*ret = heap->objects->oop_base + ((uint64_t)narrow << heap->objects->oop_shift);
	return true;
}

static void note_field(const struct sf_java_heap *heap, uint64_t pool, uint32_t name_index, uint32_t offset,
		       const struct sf_java_wanted *wanted, size_t n)
{
	char name[32];

	if (!sf_java_pool_symbol(heap->hotspot, heap->memory, pool, name_index, name, sizeof(name)))
		return;
	for (size_t i = 0; i < n; i++) {
		if (strcmp(name, wanted[i].name) == 0)
			*wanted[i].offset = offset;
	}
}

/* Up to JDK 20: six 16-bit numbers to a field; the last two are the offset, shifted left by two. */
static void old_fields(const struct sf_java_heap *heap, uint64_t class, uint64_t pool,
		       const struct sf_java_wanted *wanted, size_t n)
{
	uint64_t fields, count;
	uint16_t field[6];

	if (!sf_hotspot_get(heap->hotspot, heap->memory, SF_HS_CLASS_FIELDS, class, &fields) ||
	    !sf_hotspot_get(heap->hotspot, heap->memory, SF_HS_CLASS_N_FIELDS, class, &count))
		return;
	for (uint64_t i = 0; i < count && i < MAX_FIELDS; i++) {
		if (!sf_read(heap->memory, field, fields + 4 + i * sizeof(field), sizeof(field)))
			return;
		if (!(field[0] & INJECTED))
			note_field(heap, pool, field[1], ((uint32_t)field[5] << 16 | field[4]) >> 2,
				   wanted, n);
	}
}

/* From 21 on: compressed numbers; some flags of a field say that more belong to it. */
static void stream_fields(const struct sf_java_heap *heap, uint64_t class, uint64_t pool,
			  const struct sf_java_wanted *wanted, size_t n)
{
	uint32_t count, injected, name, signature, offset, access, flags, more;
	uint64_t stream;
	struct sf_unsigned5 in;

	if (!sf_hotspot_get(heap->hotspot, heap->memory, SF_HS_CLASS_FIELD_STREAM, class, &stream))
		return;
	sf_unsigned5_start(&in, heap->hotspot, heap->memory, stream + 4);
	if (!sf_unsigned5_next(&in, &count) || !sf_unsigned5_next(&in, &injected))
		return;
	for (uint32_t i = 0; i < count && i < MAX_FIELDS; i++) {
		if (!sf_unsigned5_next(&in, &name) || !sf_unsigned5_next(&in, &signature) ||
		    !sf_unsigned5_next(&in, &offset) || !sf_unsigned5_next(&in, &access) ||
		    !sf_unsigned5_next(&in, &flags))
			return;
		/* an initial value, a generic signature, a contention group */
		for (uint32_t bit = 1; bit <= 16; bit <<= 2) {
			if (flags & bit && !sf_unsigned5_next(&in, &more))
				return;
		}
		note_field(heap, pool, name, offset, wanted, n);
	}
}

void sf_java_find_fields(const struct sf_java_heap *heap, uint64_t class, const struct sf_java_wanted *wanted, size_t n)
{
	uint64_t pool;

	if (!sf_hotspot_get(heap->hotspot, heap->memory, SF_HS_CLASS_CONSTANTS, class, &pool))
		return;
	if (sf_hotspot_has(heap->hotspot, SF_HS_CLASS_FIELD_STREAM))
		stream_fields(heap, class, pool, wanted, n);
	else
		old_fields(heap, class, pool, wanted, n);
}

bool sf_java_class_is(const struct sf_java_heap *heap, uint64_t class, const char *wanted)
{
	uint64_t symbol;
	char name[64];

	return sf_hotspot_get(heap->hotspot, heap->memory, SF_HS_CLASS_NAME, class, &symbol) &&
	       sf_java_symbol(heap->hotspot, heap->memory, symbol, name, sizeof(name)) &&
	       strcmp(name, wanted) == 0;
}

bool sf_java_class_name(const struct sf_java_heap *heap, uint64_t class, char *ret, size_t size)
{
	uint64_t symbol;

	*ret = 0;
	if (!sf_hotspot_get(heap->hotspot, heap->memory, SF_HS_CLASS_NAME, class, &symbol) ||
	    !sf_java_symbol(heap->hotspot, heap->memory, symbol, ret, size))
		return false;
	for (char *slash = ret; (slash = strchr(slash, '/'));)
		*slash = '.';
	return *ret;
}

uint64_t sf_java_class_above(const struct sf_java_heap *heap, uint64_t object, const char *name)
{
	uint64_t class;

	if (!sf_java_class_of(heap, object, &class))
		return 0;
	for (unsigned i = 0; i < MAX_SUPERS && class; i++) {
		if (sf_java_class_is(heap, class, name))
			return class;
		if (!sf_hotspot_get(heap->hotspot, heap->memory, SF_HS_CLASS_SUPER, class, &class))
			break;
	}
	return 0;
}
