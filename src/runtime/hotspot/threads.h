/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The Java threads of a virtual machine: which JavaThread a thread has, and its full name.
 * Hostile input.
 */
#ifndef SF_RUNTIME_HOTSPOT_THREADS_H
#define SF_RUNTIME_HOTSPOT_THREADS_H

#include "base/vec.h"
#include "frozen/hotspot/hotspot.h"

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

/* How objects are laid out, found once. */
struct sf_java_objects {
	bool compressed_oops, compressed_classes, compact_headers;
	uint64_t z_shift, z_bad;             /* where the generational ZGC keeps them; 0: another
					      * collector */
	uint64_t oop_base, class_base;
	uint32_t oop_shift, class_shift;
	uint64_t thread_class, string_class; /* of which the offsets below are known; 0: not yet */
	uint32_t name, eetop;                /* in java.lang.Thread; 0: unknown */
	uint32_t value, coder;               /* in java.lang.String; coder 0: none, chars (JDK 8) */
};
void sf_java_objects_init(struct sf_java_objects *ret, const struct sf_hotspot *hotspot,
			  const struct sf_reader *memory);

/*
 * Its name as Java knows it, UTF-8, cut to size. False: cannot be read (a collector moves it,
 * ZGC).
 */
bool sf_java_thread_name(const struct sf_hotspot *hotspot, const struct sf_reader *memory,
			 struct sf_java_objects *objects, uint64_t thread, char *ret, size_t size);

#endif
