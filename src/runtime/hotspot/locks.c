/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The monitors of HotSpot (runtime/objectMonitor.hpp, runtime/lockStack.hpp), and the locks that are
 * AbstractOwnableSynchronizers.
 *
 * A monitor that a thread wants has an ObjectMonitor. Its owner is found in one of these ways:
 *
 *   - by the id of the owner (from JDK 24 on)
 *   - by the address of the owner's JavaThread (up to 23)
 *   - by an address in the owner's stack, if it took the monitor when nobody else wanted it (up to 20)
 *   - not at all, if it took the monitor when nobody else wanted it (from 21 on): then the object is in its lock stack
 */
#include "runtime/hotspot/locks.h"

#include <string.h>


#define ANONYMOUS 1u
#define DELETED 2u           /* from JDK 24 on */
#define MAX_LOCKS 8u         /* in a lock stack */

struct monitor {
	uint64_t address, owner, object;
	uint64_t locker;     /* an address in the owner's stack; 0: not known */
};

static bool get(const struct sf_java_heap *heap, enum sf_hotspot_field_name field, uint64_t base, uint64_t *ret)
{
	return sf_hotspot_get(heap->hotspot, heap->memory, field, base, ret);
}

/* --- monitors --- */

static bool is_in_stack(const struct sf_java_heap *heap, uint64_t thread, uint64_t address)
{
	uint64_t end, size;

	return address && get(heap, SF_HS_THREAD_STACK, thread, &end) && get(heap, SF_HS_THREAD_STACK_SIZE, thread, &size) &&
	       address < end && end - address <= size;
}

/* The top counts bytes from the start of the JavaThread. */
static bool is_in_lock_stack(const struct sf_java_heap *heap, uint64_t thread, uint64_t object)
{
	const struct sf_hotspot_field *fields = heap->hotspot->fields;
	const uint64_t first = fields[SF_HS_THREAD_LOCKS].at + fields[SF_HS_LOCKS_BASE].at;
	uint64_t top, locks[MAX_LOCKS];

	if (!object || !sf_hotspot_has(heap->hotspot, SF_HS_THREAD_LOCKS) || !sf_hotspot_has(heap->hotspot, SF_HS_LOCKS_BASE) ||
	    !get(heap, SF_HS_LOCKS_TOP, thread + fields[SF_HS_THREAD_LOCKS].at, &top) || top < first ||
	    (top - first) / sizeof(*locks) > MAX_LOCKS || !sf_read(heap->memory, locks, thread + first, top - first))
		return false;
	for (uint64_t i = 0; i < (top - first) / sizeof(*locks); i++) {
		if (locks[i] == object)
			return true;
	}
	return false;
}

static bool is_owner(const struct sf_java_heap *heap, uint64_t thread, const struct monitor *monitor)
{
	uint64_t id;

	if (monitor->owner == ANONYMOUS)
		return is_in_lock_stack(heap, thread, monitor->object) || is_in_stack(heap, thread, monitor->locker);
	if (sf_hotspot_has(heap->hotspot, SF_HS_THREAD_OWNER_ID))
		return monitor->owner != DELETED && get(heap, SF_HS_THREAD_OWNER_ID, thread, &id) && id == monitor->owner;
	return monitor->owner == thread || is_in_stack(heap, thread, monitor->owner);
}

static const struct sf_java_thread *find_thread(const struct sf_java_threads *threads, uint64_t address)
{
	for (size_t i = 0; address && i < threads->items.n; i++) {
		if (threads->items.items[i].address == address)
			return &threads->items.items[i];
	}
	return NULL;
}

/* 0: not known. */
static int32_t tid_of(const struct sf_java_heap *heap, const struct sf_java_thread *thread)
{
	return thread && sf_hotspot_is_thread(heap->hotspot, heap->memory, thread->address, thread->tid) ? thread->tid : 0;
}

static int32_t find_owner(const struct sf_java_heap *heap, const struct sf_java_threads *threads, const struct monitor *monitor,
			  uint64_t *hint)
{
	const struct sf_java_thread *owner = find_thread(threads, *hint);

	if (!monitor->owner)
		return 0;
	if (owner && !is_owner(heap, owner->address, monitor))
		owner = NULL;
	for (size_t i = 0; !owner && i < threads->items.n; i++) {
		if (is_owner(heap, threads->items.items[i].address, monitor))
			owner = &threads->items.items[i];
	}
	*hint = owner ? owner->address : 0;
	return tid_of(heap, owner);
}

/* The field is a handle, which points to a slot with the reference; up to JDK 15 the reference itself. */
static bool find_object(const struct sf_java_heap *heap, const struct monitor *monitor, uint64_t *ret)
{
	uint64_t handle, class;

	if (!get(heap, SF_HS_MONITOR_OBJECT, monitor->address, &handle) || !handle)
		return false;
	if (sf_java_wide_reference(heap, handle, ret) && *ret % 8 == 0 && sf_java_class_of(heap, *ret, &class) &&
	    sf_java_class_name(heap, class, (char[SF_LOCK_CLASS]){ 0 }, SF_LOCK_CLASS))
		return true;
	*ret = handle;
	return handle % 8 == 0;
}

static bool read_monitor(const struct sf_java_heap *heap, uint64_t thread, struct monitor *ret)
{
	*ret = (struct monitor){ 0 };
	if (!get(heap, SF_HS_THREAD_PENDING, thread, &ret->address) || !ret->address ||
	    !get(heap, SF_HS_MONITOR_OWNER, ret->address, &ret->owner))
		return false;
	get(heap, SF_HS_MONITOR_LOCKER, ret->address, &ret->locker);
	if (!find_object(heap, ret, &ret->object))
		ret->object = 0;
	return true;
}

/* "Foo", or "java.lang.Class of Foo" for the lock of a class. */
static void name_class(const struct sf_java_heap *heap, uint64_t object, char ret[SF_LOCK_CLASS])
{
	static const char mirror[] = "java.lang.Class";
	uint64_t class, of, at;

	if (!object || !sf_java_class_of(heap, object, &class) || !sf_java_class_name(heap, class, ret, SF_LOCK_CLASS) ||
	    strcmp(ret, mirror) != 0 || !get(heap, SF_HS_MIRROR_CLASS, 0, &at) || at > UINT16_MAX ||
	    !sf_read_u64(heap->memory, object + at, &of))
		return;
	memcpy(ret + sizeof(mirror) - 1, " of ", 5);
	if (!sf_java_class_name(heap, of, ret + sizeof(mirror) + 3, SF_LOCK_CLASS - sizeof(mirror) - 3))
		ret[sizeof(mirror) - 1] = 0;
}

/* --- locks of java.util.concurrent --- */

static bool find_lock_class(const struct sf_java_heap *heap, uint64_t lock)
{
	struct sf_java_objects *objects = heap->objects;
	const struct sf_java_wanted wanted = { "exclusiveOwnerThread", &objects->lock_owner };
	const uint64_t class = sf_java_class_above(heap, lock, "java/util/concurrent/locks/AbstractOwnableSynchronizer");

	if (class && class != objects->lock_class) {
		objects->lock_owner = 0;
		sf_java_find_fields(heap, class, &wanted, 1);
		objects->lock_class = class;
	}
	return class && objects->lock_owner;
}

/* The lock for which a thread is parked, and the JavaThread that owns the lock. A virtual thread has no JavaThread. */
static bool read_parked(const struct sf_java_heap *heap, uint64_t thread, uint64_t *lock_ret, uint64_t *owner_ret)
{
	const struct sf_java_objects *objects = heap->objects;
	uint64_t object, owner;

	return sf_java_thread_object(heap, thread, &object) && objects->blocker &&
	       sf_java_reference(heap, object + objects->blocker, lock_ret) && find_lock_class(heap, *lock_ret) &&
	       sf_java_reference(heap, *lock_ret + objects->lock_owner, &owner) &&
	       sf_java_class_above(heap, owner, "java/lang/Thread") &&
	       sf_read_u64(heap->memory, owner + objects->eetop, owner_ret);
}

bool sf_java_lock_wait(const struct sf_java_heap *heap, const struct sf_java_threads *threads, uint64_t thread, bool timed,
		       uint64_t *hint, struct sf_lock_wait *ret)
{
	struct monitor monitor;
	uint64_t lock, owner;

	*ret = (struct sf_lock_wait){ 0 };
	if (read_monitor(heap, thread, &monitor)) {
		ret->kind = "monitor";
		ret->address = monitor.object ? monitor.object : monitor.address;
		ret->owner = find_owner(heap, threads, &monitor, hint);
		name_class(heap, monitor.object, ret->of);
	} else if (read_parked(heap, thread, &lock, &owner)) {
		ret->kind = "lock";
		ret->address = lock;
		ret->owner = tid_of(heap, find_thread(threads, owner));
		ret->timed = timed;
		name_class(heap, lock, ret->of);
	}
	return ret->kind != NULL;
}
