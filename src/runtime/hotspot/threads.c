/* SPDX-License-Identifier: Apache-2.0 */
/* Lists the Java threads of a virtual machine, and reads their names. Its memory is hostile input. */
#include "runtime/hotspot/threads.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/hotspot/tables.h"

#define MAX_THREADS 100000
#define MAX_FLAGS 16384

static int compare(const void *left, const void *right)
{
	const struct sf_java_thread *a = left, *b = right;

	return (a->tid > b->tid) - (a->tid < b->tid);
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

int sf_java_flag(const struct sf_hotspot *hotspot, const struct sf_reader *memory, const char *name)
{
	const uint32_t stride = hotspot->sizes[SF_HS_SIZE_FLAG];
	uint64_t flags, n, text, address;
	uint8_t value;
	char found[64];

	if (!stride || !sf_hotspot_get(hotspot, memory, SF_HS_FLAGS, 0, &flags) ||
	    !sf_hotspot_get(hotspot, memory, SF_HS_N_FLAGS, 0, &n) || n > MAX_FLAGS)
		return -1;
	for (uint64_t i = 0; i < n; i++) {
		if (!sf_hotspot_get(hotspot, memory, SF_HS_FLAG_NAME, flags + i * stride, &text))
			return -1;
		if (!sf_hotspot_read_string(memory, text, found, sizeof(found)) ||
		    strcmp(found, name) != 0)
			continue;
		if (!sf_hotspot_get(hotspot, memory, SF_HS_FLAG_ADDRESS, flags + i * stride,
				    &address) || !sf_read(memory, &value, address, 1))
			return -1;
		return value;
	}
	return -1;
}
