/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads the names of Java threads from Java objects.
 *
 * Just enough of Java's objects to read the name of a thread: its class says where its fields
 * are, and so does String's (HotSpot: oops/oop.hpp, oops/fieldInfo.hpp,
 * classfile/javaClasses.hpp). The collector may move objects meanwhile: the thread's object must
 * point back at its JavaThread, before and after.
 */
#include <stdio.h>
#include <string.h>

#include "runtime/hotspot/metadata.h"
#include "runtime/hotspot/flags.h"
#include "runtime/hotspot/threads.h"
#include "runtime/hotspot/unsigned5.h"

#define MAX_FIELDS 1000
#define MAX_SUPERS 32
#define MAX_NAME 1024
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

/* The data that is needed to read objects. */
struct heap {
	const struct sf_hotspot *hotspot;
	const struct sf_reader *memory;
	struct sf_java_objects *objects;
};

static bool class_of(const struct heap *heap, uint64_t object, uint64_t *ret)
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
static bool wide_reference(const struct heap *heap, uint64_t address, uint64_t *ret)
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

static bool reference(const struct heap *heap, uint64_t address, uint64_t *ret)
{
	uint32_t narrow;

	if (!heap->objects->compressed_oops)
		return wide_reference(heap, address, ret);
	if (!sf_read(heap->memory, &narrow, address, sizeof(narrow)) || !narrow)
		return false;
	*ret = heap->objects->oop_base + ((uint64_t)narrow << heap->objects->oop_shift);
	return true;
}

/* A field that is looked for; its offset when it is found. */
struct wanted {
	const char *name;
	uint32_t *offset;
};

static void note_field(const struct heap *heap, uint64_t pool, uint32_t name_index, uint32_t offset,
		       const struct wanted *wanted, size_t n)
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
static void old_fields(const struct heap *heap, uint64_t class, uint64_t pool,
		       const struct wanted *wanted, size_t n)
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
static void stream_fields(const struct heap *heap, uint64_t class, uint64_t pool,
			  const struct wanted *wanted, size_t n)
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

static void find_fields(const struct heap *heap, uint64_t class, const struct wanted *wanted,
			size_t n)
{
	uint64_t pool;

	if (!sf_hotspot_get(heap->hotspot, heap->memory, SF_HS_CLASS_CONSTANTS, class, &pool))
		return;
	if (sf_hotspot_has(heap->hotspot, SF_HS_CLASS_FIELD_STREAM))
		stream_fields(heap, class, pool, wanted, n);
	else
		old_fields(heap, class, pool, wanted, n);
}

static bool is_named(const struct heap *heap, uint64_t class, const char *wanted)
{
	uint64_t symbol;
	char name[64];

	return sf_hotspot_get(heap->hotspot, heap->memory, SF_HS_CLASS_NAME, class, &symbol) &&
	       sf_java_symbol(heap->hotspot, heap->memory, symbol, name, sizeof(name)) &&
	       strcmp(name, wanted) == 0;
}

/* The class of a thread's object is java.lang.Thread or below it. */
static bool find_thread_class(const struct heap *heap, uint64_t object)
{
	struct sf_java_objects *objects = heap->objects;
	const struct wanted wanted[] = { { "name", &objects->name }, { "eetop", &objects->eetop } };
	uint64_t class;

	if (objects->thread_class)
		return true;
	if (!class_of(heap, object, &class))
		return false;
	for (unsigned i = 0; i < MAX_SUPERS && class; i++) {
		if (is_named(heap, class, "java/lang/Thread")) {
			find_fields(heap, class, wanted, 2);
			objects->thread_class = objects->name && objects->eetop ? class : 0;
			return objects->thread_class != 0;
		}
		if (!sf_hotspot_get(heap->hotspot, heap->memory, SF_HS_CLASS_SUPER, class, &class))
			break;
	}
	return false;
}

static bool find_string_class(const struct heap *heap, uint64_t object)
{
	struct sf_java_objects *objects = heap->objects;
	const struct wanted wanted[] = {
		{ "value", &objects->value }, { "coder", &objects->coder },
	};
	uint64_t class;

	if (objects->string_class)
		return true;
	if (!class_of(heap, object, &class) || !is_named(heap, class, "java/lang/String"))
		return false;
	find_fields(heap, class, wanted, 2);
	objects->string_class = objects->value ? class : 0;
	return objects->string_class != 0;
}

static size_t put_utf8(char *ret, size_t left, uint32_t c)
{
	char bytes[4];
	size_t n;

	if (c < 0x80) {
		n = (size_t)snprintf(bytes, sizeof(bytes), "%c", (int)c);
	} else if (c < 0x800) {
		bytes[0] = (char)(0xc0 | c >> 6);
		bytes[1] = (char)(0x80 | (c & 0x3f));
		n = 2;
	} else {
		bytes[0] = (char)(0xe0 | c >> 12);
		bytes[1] = (char)(0x80 | (c >> 6 & 0x3f));
		bytes[2] = (char)(0x80 | (c & 0x3f));
		n = 3;
	}
	if (c == 0 || (c >= 0xd800 && c < 0xe000)) { /* half of a pair: not worth a table */
		bytes[0] = '?';
		n = 1;
	}
	if (n >= left)
		return 0;
	memcpy(ret, bytes, n);
	return n;
}

static void put_chars(const uint8_t *bytes, size_t n, bool wide, char *ret, size_t size)
{
	size_t at = 0, added = 1;

	for (size_t i = 0; i + wide < n && added; i += 1u + wide) {
		uint32_t c = wide ? (uint32_t)(bytes[i] | bytes[i + 1] << 8) : bytes[i];

		added = put_utf8(ret + at, size - at, c);
		at += added;
	}
	ret[at] = 0;
}

static bool read_string(const struct heap *heap, uint64_t string, char *ret, size_t size)
{
	const struct sf_java_objects *objects = heap->objects;
	/* An array's length is behind its header, its elements behind that. */
	const uint64_t header = objects->compressed_classes ? 12 : 16;
	uint64_t array, length_at = objects->compact_headers ? 8 : header;
	uint8_t bytes[MAX_NAME], coder = 1;
	uint32_t length, n;

	if (!find_string_class(heap, string) || !reference(heap, string + objects->value, &array) ||
	    !sf_read(heap->memory, &length, array + length_at, sizeof(length)) || !length ||
	    (objects->coder && !sf_read(heap->memory, &coder, string + objects->coder, 1)) ||
	    coder > 1)
		return false;
	n = objects->coder ? length : length * 2;
	if (length > 1u << 20)
		return false;
	if (n > sizeof(bytes))
		n = sizeof(bytes);
	/*
	 * Without compressed classes the elements started at the next multiple of eight, up to JDK
	 * 22 (JDK-8139457).
	 */
	length_at += !objects->compact_headers && !objects->compressed_classes &&
		     heap->hotspot->version < 23 ? 8 : 4;
	if (!sf_read(heap->memory, bytes, array + length_at, n))
		return false;
	put_chars(bytes, n, coder == 1, ret, size);
	return ret[0] != 0;
}

static bool points_back(const struct heap *heap, uint64_t object, uint64_t thread)
{
	uint64_t back;

	return sf_read_u64(heap->memory, object + heap->objects->eetop, &back) && back == thread;
}

static bool is_object_of(const struct heap *heap, uint64_t object, uint64_t thread)
{
	return object && object % 8 == 0 && find_thread_class(heap, object) &&
	       points_back(heap, object, thread);
}

/*
 * The field is a handle, which points to a slot with the reference; up to JDK 13 the reference
 * itself.
 */
static bool find_object(const struct heap *heap, uint64_t thread, uint64_t *ret)
{
	uint64_t handle;

	if (!sf_hotspot_get(heap->hotspot, heap->memory, SF_HS_THREAD_OBJECT, thread, &handle) ||
	    !handle)
		return false;
	if (wide_reference(heap, handle, ret) && is_object_of(heap, *ret, thread))
		return true;
	*ret = handle;
	return is_object_of(heap, handle, thread);
}

bool sf_java_thread_name(const struct sf_hotspot *hotspot, const struct sf_reader *memory,
			 struct sf_java_objects *objects, uint64_t thread, char *ret, size_t size)
{
	const struct heap heap = { hotspot, memory, objects };
	uint64_t object, string;

	ret[0] = 0;
	if (!find_object(&heap, thread, &object) ||
	    !reference(&heap, object + objects->name, &string) ||
	    !read_string(&heap, string, ret, size))
		return false;
	if (points_back(&heap, object, thread))
		return true;
	ret[0] = 0;
	return false;
}
