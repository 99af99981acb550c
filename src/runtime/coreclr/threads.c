/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads the list of Thread objects (src/coreclr/vm/threads.h in dotnet/runtime: ThreadStore), the names of their
 * threads from managed objects, and the monitors that they wait to enter.
 */
#include "runtime/coreclr/threads.h"

#include <stdio.h>
#include <string.h>

#define MAX_THREADS 262144
#define IS_POOL_WORKER 0x01000000u    /* Thread.State: TS_TPWorkerThread */
#define NAME_SIZE 256
#define TO_ENTER 0u              /* the kind of an item: others wait for a pulse */
#define FOREVER UINT32_MAX
#define LOCKED 1u
#define INDEX 0x7fffffffu        /* of a lock in the table; another bit is above */
#define IS_FREE UINT64_C(1)      /* an entry's object leads to the next free entry */

static bool add(const struct sf_clr_description *description, const struct sf_reader *memory,
		uint64_t address, struct sf_clr_threads *threads)
{
	struct sf_clr_thread thread = { .thread = address };
	uint64_t id;

	if (!sf_clr_get(&description->layout, memory, SF_CLR_THREAD_OS_ID, address, &id))
		return false;
	if (id == 0 || id > INT32_MAX)
		return true; /* not started yet, or ended */
	thread.tid = (int32_t)id;
	return sf_vec_push(&threads->items, thread);
}

bool sf_clr_threads_read(const struct sf_clr_description *description, const struct sf_reader *memory,
			 struct sf_clr_threads *threads)
{
	const struct sf_clr_layout *layout = &description->layout;
	uint64_t store, link;

	threads->items.n = 0;
	if (!sf_clr_has(layout, SF_CLR_THREAD_LINK) || !description->thread_store ||
	    !sf_read_u64(memory, description->thread_store, &store) || !store ||
	    !sf_clr_get(layout, memory, SF_CLR_STORE_FIRST, store, &link))
		return false;
	for (unsigned i = 0; link && i < MAX_THREADS; i++) {
		if (!add(description, memory, link - layout->fields[SF_CLR_THREAD_LINK], threads) ||
		    !sf_read_u64(memory, link, &link))
			return false;
	}
	return true;
}

void sf_clr_threads_deinit(struct sf_clr_threads *threads)
{
	sf_vec_deinit(&threads->items);
}

const struct sf_clr_thread *sf_clr_threads_find(const struct sf_clr_threads *threads, int32_t tid)
{
	for (size_t i = 0; i < threads->items.n; i++) {
		if (threads->items.items[i].tid == tid)
			return &threads->items.items[i];
	}
	return NULL;
}

static bool find_fields(const struct sf_clr_naming *naming, uint64_t table, struct sf_clr_thread_fields *fields)
{
	if (fields->table)
		return fields->table == table;
	if (!sf_clr_is_type(naming, table, "System.Threading", "Thread") ||
	    !sf_clr_find_field(naming, table, "_name", &fields->name) ||
	    !sf_clr_find_field(naming, table, "_DONT_USE_InternalThread", &fields->native))
		return false;
	fields->table = table;
	return true;
}

/* The managed thread points back at its Thread: that proves it. */
static enum sf_naming read_name(const struct sf_clr_naming *naming, struct sf_clr_thread_fields *fields, uint64_t thread,
		      char *ret, size_t size)
{
	const struct sf_clr_layout *layout = &naming->description->layout;
	uint64_t handle, object, native, string;

	*ret = 0;
	if (!naming->description->suspender ||
	    !sf_clr_get(layout, naming->memory, SF_CLR_THREAD_OBJECT, thread, &handle) || !handle ||
	    !sf_read_u64(naming->memory, handle, &object) || !object)
		return SF_UNNAMED;
	if (!sf_clr_is_still(naming) || !sf_read_u64(naming->memory, handle, &object) ||
	    !find_fields(naming, sf_clr_table_of(naming, object), fields) ||
	    !sf_read_u64(naming->memory, object + fields->native, &native) || native != thread ||
	    !sf_read_u64(naming->memory, object + fields->name, &string))
		return SF_NAMED_LATER;
	if (!string)
		return SF_UNNAMED;
	return sf_clr_read_string(naming, string, ret, size) ? SF_NAMED : SF_NAMED_LATER;
}

/* NULL: none that its thread's own name does not say. */
static const char *role_of(const struct sf_clr_naming *naming, uint64_t thread)
{
	uint32_t state;

	return sf_clr_get_u32(&naming->description->layout, naming->memory, SF_CLR_THREAD_STATE, thread, &state) &&
	       state & IS_POOL_WORKER ? "pool worker" : NULL;
}

static bool is_finalizer(const struct sf_clr_naming *naming, uint64_t thread)
{
	uint64_t finalizer;

	return naming->description->finalizer &&
	       sf_read_u64(naming->memory, naming->description->finalizer, &finalizer) && finalizer == thread;
}

/* The runtime's own threads have names such as ".NET TP Worker", which say their role. */
enum sf_naming sf_clr_thread_name(const struct sf_clr_naming *naming, struct sf_clr_thread_fields *fields, uint64_t thread,
			char *ret, size_t size)
{
	const char *role = role_of(naming, thread);
	char name[NAME_SIZE];
	const enum sf_naming named = read_name(naming, fields, thread, name, sizeof(name));

	if (named == SF_NAMED_LATER)
		return named;
	if (!*name && is_finalizer(naming, thread))
		snprintf(ret, size, ".NET Finalizer");
	else if (!role || strncmp(name, ".NET ", 5) == 0)
		snprintf(ret, size, "%s", name);
	else if (*name)
		snprintf(ret, size, "%s (%s)", name, role);
	else
		snprintf(ret, size, ".NET %s", role);
	return *ret ? SF_NAMED : SF_UNNAMED;
}

/*
 * --- monitors ---
 *
 * A thread that waits for a monitor says so in its Thread, for debuggers: a DebugBlockingItem, which has the AwareLock
 * that it waits for (src/coreclr/vm/threads.h, syncblk.h in dotnet/runtime). No runtime describes where the Thread has
 * it, so each use is proved: the item names the AppDomain; the AwareLock says which entry of the table of locks it is,
 * and the entry says the same of it; the owner is named twice.
 */

/* The same in 8.0.31, 9.0.20 and 10.0.12. */
struct item {
	uint64_t lock, domain;
	uint32_t kind, timeout;
};

struct aware_lock {
	uint32_t state, recursion;
	uint64_t holder;         /* .NET 8 and 9: the Thread; 10: its managed id, in the lower half, and nothing that is set */
	uint64_t os_id;
	uint32_t precious, index;
};

struct entry {
	uint64_t block, object;  /* a sync block begins with its AwareLock */
};

/* Where a Thread has the pointer to its item. To add a version: add a line. */
static const struct {
	unsigned major, at;
} item_places[] = { { 8, 1192 }, { 9, 1032 }, { 10, 672 } };

static bool read_item(const struct sf_clr_naming *naming, unsigned major, uint64_t thread, struct item *ret)
{
	uint64_t address = 0, domain;

	for (size_t i = 0; i < sizeof(item_places) / sizeof(item_places[0]); i++) {
		if (item_places[i].major == major && !sf_read_u64(naming->memory, thread + item_places[i].at, &address))
			return false;
	}
	return address && address % 8 == 0 && sf_read(naming->memory, ret, address, sizeof(*ret)) &&
	       naming->description->domain && sf_read_u64(naming->memory, naming->description->domain, &domain) &&
	       ret->kind == TO_ENTER && ret->domain == domain;
}

/* The lock, and its object. */
static bool read_lock(const struct sf_clr_naming *naming, uint64_t address, struct aware_lock *ret, uint64_t *object_ret)
{
	struct entry entry;
	uint64_t table;

	if (!address || !sf_read(naming->memory, ret, address, sizeof(*ret)) || !(ret->index & INDEX) ||
	    !naming->description->sync_table || !sf_read_u64(naming->memory, naming->description->sync_table, &table) ||
	    !sf_read(naming->memory, &entry, table + sizeof(entry) * (uint64_t)(ret->index & INDEX), sizeof(entry)))
		return false;
	*object_ret = entry.object;
	return entry.block == address && entry.object && !(entry.object & IS_FREE);
}

/* 0: nobody has it now, or that is not proved. */
static int32_t find_owner(const struct sf_clr_naming *naming, const struct sf_clr_threads *threads, const struct aware_lock *lock)
{
	const struct sf_clr_thread *owner = lock->state & LOCKED && lock->os_id <= INT32_MAX ?
		sf_clr_threads_find(threads, (int32_t)lock->os_id) : NULL;
	uint32_t id;

	if (!owner)
		return 0;
	if (owner->thread == lock->holder)
		return owner->tid;
	return sf_clr_get_u32(&naming->description->layout, naming->memory, SF_CLR_THREAD_ID, owner->thread, &id) &&
	       id == (uint32_t)lock->holder ? owner->tid : 0;
}

bool sf_clr_lock_wait(const struct sf_clr_naming *naming, unsigned major, const struct sf_clr_threads *threads, uint64_t thread,
		      struct sf_lock_wait *ret)
{
	struct aware_lock lock;
	struct item item;
	uint64_t object;

	*ret = (struct sf_lock_wait){ 0 };
	if (!sf_clr_is_still(naming) || !read_item(naming, major, thread, &item) ||
	    !read_lock(naming, item.lock, &lock, &object))
		return false;
	ret->kind = "monitor";
	ret->address = object;
	ret->owner = find_owner(naming, threads, &lock);
	ret->timed = item.timeout != FOREVER;
	sf_clr_name_type(naming, sf_clr_table_of(naming, object), ret->of, sizeof(ret->of));
	if (ret->of[0] == '?')
		ret->of[0] = 0;
	return true;
}
