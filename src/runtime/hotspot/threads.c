/* SPDX-License-Identifier: Apache-2.0 */
/* Lists the Java threads of a virtual machine, and reads their names. Its memory is hostile input. */
#include "runtime/hotspot/threads.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/hotspot/tables.h"

#define MAX_THREADS 100000

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
