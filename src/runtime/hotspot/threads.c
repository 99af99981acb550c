/* SPDX-License-Identifier: Apache-2.0 */
/* Lists the Java threads of a virtual machine, and reads their names from Java objects. Its memory is hostile input. */
#include "runtime/hotspot/threads.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/search.h"
#include "runtime/hotspot/heap.h"
#include "runtime/hotspot/tables.h"

#define MAX_THREADS 100000
#define MAX_NAME 1024

static int compare(const void *left, const void *right)
{
	const struct sf_java_thread *a = left, *b = right;

	return sf_order(a->tid, b->tid);
}

static bool read_tid(const struct sf_hotspot *hotspot, const struct sf_reader *memory,
		     uint64_t thread, int32_t *ret)
{
	uint64_t os, tid;

	if (!sf_hotspot_get(hotspot, memory, SF_HS_THREAD_OS, thread, &os) || !os ||
	    !sf_hotspot_get(hotspot, memory, SF_HS_OS_ID, os, &tid))
		return false;
	*ret = (int32_t)tid;
	return true;
}

/* A thread that is just starting has no OSThread yet, and is left out. */
static bool add(const struct sf_hotspot *hotspot, const struct sf_reader *memory, uint64_t address,
		struct sf_java_threads *ret)
{
	struct sf_java_thread thread = { .address = address };

	return !read_tid(hotspot, memory, address, &thread.tid) ||
	       sf_vec_push(&ret->items, thread);
}

static bool list_linked(const struct sf_hotspot *hotspot, const struct sf_reader *memory,
			struct sf_java_threads *ret)
{
	uint64_t thread;

	if (!sf_hotspot_get(hotspot, memory, SF_HS_FIRST_THREAD, 0, &thread))
		return false;
	for (unsigned i = 0; i < MAX_THREADS && thread; i++) {
		if (!add(hotspot, memory, thread, ret) ||
		    !sf_hotspot_get(hotspot, memory, SF_HS_NEXT_THREAD, thread, &thread))
			break;
	}
	return true;
}

/* The list is replaced, not changed, when threads come and go. */
static bool list_array(const struct sf_hotspot *hotspot, const struct sf_reader *memory,
		       struct sf_java_threads *ret)
{
	uint64_t list, n, items, thread;

	if (!sf_hotspot_get(hotspot, memory, SF_HS_THREADS, 0, &list) || !list ||
	    !sf_hotspot_get(hotspot, memory, SF_HS_THREADS_LENGTH, list, &n) || n > MAX_THREADS ||
	    !sf_hotspot_get(hotspot, memory, SF_HS_THREADS_ITEMS, list, &items))
		return false;
	for (uint64_t i = 0; i < n; i++) {
		if (!sf_read_u64(memory, items + 8 * i, &thread) || !thread ||
		    !add(hotspot, memory, thread, ret))
			break;
	}
	return true;
}

bool sf_java_threads_list(const struct sf_hotspot *hotspot, const struct sf_reader *memory,
			  struct sf_java_threads *ret)
{
	bool fine;

	ret->items.n = 0;
	fine = sf_hotspot_has(hotspot, SF_HS_THREADS) ? list_array(hotspot, memory, ret)
						      : list_linked(hotspot, memory, ret);
	if (ret->items.n)
		qsort(ret->items.items, ret->items.n, sizeof(struct sf_java_thread), compare);
	return fine;
}

uint64_t sf_java_threads_find(const struct sf_java_threads *threads, int32_t tid)
{
	const struct sf_java_thread wanted = { .tid = tid };
	const struct sf_java_thread *found =
		threads->items.n ? bsearch(&wanted, threads->items.items, threads->items.n,
					   sizeof(wanted), compare) : NULL;

	return found ? found->address : 0;
}

/*
 * --- names ---
 *
 * The collector may move objects meanwhile: the thread's object must
 * point back at its JavaThread, before and after (HotSpot: classfile/javaClasses.hpp).
 */

/* The class of a thread's object is java.lang.Thread or below it. */
static bool find_thread_class(const struct sf_java_heap *heap, uint64_t object)
{
	struct sf_java_objects *objects = heap->objects;
	const struct sf_java_wanted wanted[] = { { "name", &objects->name }, { "eetop", &objects->eetop },
						 { "parkBlocker", &objects->blocker } };
	uint64_t class;

	if (objects->thread_class)
		return true;
	class = sf_java_class_above(heap, object, "java/lang/Thread");
	if (!class)
		return false;
	sf_java_find_fields(heap, class, wanted, sizeof(wanted) / sizeof(*wanted));
	objects->thread_class = objects->name && objects->eetop ? class : 0;
	return objects->thread_class != 0;
}

static bool find_string_class(const struct sf_java_heap *heap, uint64_t object)
{
	struct sf_java_objects *objects = heap->objects;
	const struct sf_java_wanted wanted[] = {
		{ "value", &objects->value }, { "coder", &objects->coder },
	};
	uint64_t class;

	if (objects->string_class)
		return true;
	if (!sf_java_class_of(heap, object, &class) || !sf_java_class_is(heap, class, "java/lang/String"))
		return false;
	sf_java_find_fields(heap, class, wanted, 2);
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

static bool read_string(const struct sf_java_heap *heap, uint64_t string, char *ret, size_t size)
{
	const struct sf_java_objects *objects = heap->objects;
	/* An array's length is behind its header, its elements behind that. */
	const uint64_t header = objects->compressed_classes ? 12 : 16;
	uint64_t array, length_at = objects->compact_headers ? 8 : header;
	uint8_t bytes[MAX_NAME], coder = 1;
	uint32_t length, n;

	if (!find_string_class(heap, string) || !sf_java_reference(heap, string + objects->value, &array) ||
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

static bool points_back(const struct sf_java_heap *heap, uint64_t object, uint64_t thread)
{
	uint64_t back;

	return sf_read_u64(heap->memory, object + heap->objects->eetop, &back) && back == thread;
}

static bool is_object_of(const struct sf_java_heap *heap, uint64_t object, uint64_t thread)
{
	return object && object % 8 == 0 && find_thread_class(heap, object) &&
	       points_back(heap, object, thread);
}

/*
 * The field is a handle, which points to a slot with the reference; up to JDK 13 the reference
 * itself.
 */
bool sf_java_thread_object(const struct sf_java_heap *heap, uint64_t thread, uint64_t *ret)
{
	uint64_t handle;

	if (!sf_hotspot_get(heap->hotspot, heap->memory, SF_HS_THREAD_OBJECT, thread, &handle) ||
	    !handle)
		return false;
	if (sf_java_wide_reference(heap, handle, ret) && is_object_of(heap, *ret, thread))
		return true;
	*ret = handle;
	return is_object_of(heap, handle, thread);
}

bool sf_java_thread_name(const struct sf_hotspot *hotspot, const struct sf_reader *memory,
			 struct sf_java_objects *objects, uint64_t thread, char *ret, size_t size)
{
	const struct sf_java_heap heap = { hotspot, memory, objects };
	uint64_t object, string;

	ret[0] = 0;
	if (!sf_java_thread_object(&heap, thread, &object) ||
	    !sf_java_reference(&heap, object + objects->name, &string) ||
	    !read_string(&heap, string, ret, size))
		return false;
	if (points_back(&heap, object, thread))
		return true;
	ret[0] = 0;
	return false;
}
