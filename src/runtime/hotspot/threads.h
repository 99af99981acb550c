/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The Java threads of a virtual machine: which JavaThread a thread has, and its full name.
 * Hostile input.
 */
#ifndef SF_RUNTIME_HOTSPOT_THREADS_H
#define SF_RUNTIME_HOTSPOT_THREADS_H

#include "base/vec.h"
#include "frozen/hotspot/hotspot.h"
#include "runtime/hotspot/heap.h"

struct sf_java_thread {
	int32_t tid;             /* as the virtual machine knows it: in its own pid namespace */
	uint64_t address;        /* of the JavaThread */
};

/* Fills `ret` anew, sorted by tid. False when the list cannot be read. */
struct sf_java_threads {
	SF_VEC(struct sf_java_thread) items;
};
bool sf_java_threads_list(const struct sf_hotspot *hotspot, const struct sf_reader *memory,
			  struct sf_java_threads *ret);

/* The JavaThread that was listed for a thread; 0: none. */
uint64_t sf_java_threads_find(const struct sf_java_threads *threads, int32_t tid);

/*
 * Its name as Java knows it, UTF-8, cut to size. False: cannot be read (a collector moves it,
 * ZGC).
 */
bool sf_java_thread_name(const struct sf_hotspot *hotspot, const struct sf_reader *memory,
			 struct sf_java_objects *objects, uint64_t thread, char *ret, size_t size);

/*
 * The java.lang.Thread of a JavaThread, which points back at it. The object is where it was a moment ago: a collector may
 * move it.
 */
bool sf_java_thread_object(const struct sf_java_heap *heap, uint64_t thread, uint64_t *ret);

#endif
