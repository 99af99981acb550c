/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Java objects: their classes, their fields, and the references from one to another. A collector may move objects at
 * any time, so each caller must check what it reads. Hostile input.
 */
#ifndef SF_RUNTIME_HOTSPOT_HEAP_H
#define SF_RUNTIME_HOTSPOT_HEAP_H

#include "frozen/hotspot/hotspot.h"

/* How objects are laid out, found once. */
struct sf_java_objects {
	bool compressed_oops, compressed_classes, compact_headers;
	uint64_t z_shift, z_bad;             /* where the generational ZGC keeps them; 0: another
					      * collector */
	uint64_t oop_base, class_base;
	uint32_t oop_shift, class_shift;
	uint64_t thread_class, string_class; /* of which the offsets below are known; 0: not yet */
	uint32_t name, eetop, blocker;       /* in java.lang.Thread; 0: unknown */
	uint32_t value, coder;               /* in java.lang.String; coder 0: none, chars (JDK 8) */
	uint64_t lock_class;                 /* AbstractOwnableSynchronizer; 0: not yet */
	uint32_t lock_owner;                 /* its exclusiveOwnerThread */
};
void sf_java_objects_init(struct sf_java_objects *ret, const struct sf_hotspot *hotspot,
			  const struct sf_reader *memory);

/* The data that is needed to read objects. */
struct sf_java_heap {
	const struct sf_hotspot *hotspot;
	const struct sf_reader *memory;
	struct sf_java_objects *objects;
};

bool sf_java_class_of(const struct sf_java_heap *heap, uint64_t object, uint64_t *ret);

/* Whether the class has this name ("java/lang/String"). */
bool sf_java_class_is(const struct sf_java_heap *heap, uint64_t class, const char *name);

/* Its name for people: "java.lang.String"; false, and "": it is none. */
bool sf_java_class_name(const struct sf_java_heap *heap, uint64_t class, char *ret, size_t size);

/* The class of this name that is the object's, or above it; 0: there is none. */
uint64_t sf_java_class_above(const struct sf_java_heap *heap, uint64_t object, const char *name);

/* The reference in this field of an object, as an address; false where it is null. */
bool sf_java_reference(const struct sf_java_heap *heap, uint64_t address, uint64_t *ret);

/*
 * A reference of full width, as outside of objects. One with stale colours may lead to where an object was: it is not
 * followed.
 */
bool sf_java_wide_reference(const struct sf_java_heap *heap, uint64_t address, uint64_t *ret);

/* A field that is looked for; its offset when it is found. */
struct sf_java_wanted {
	const char *name;
	uint32_t *offset;
};

/* Of the fields that the class itself declares. */
void sf_java_find_fields(const struct sf_java_heap *heap, uint64_t class, const struct sf_java_wanted *wanted, size_t n);

#endif
