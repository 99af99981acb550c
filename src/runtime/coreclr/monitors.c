/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A thread that waits for a monitor says so in its Thread, for debuggers: a DebugBlockingItem, which has the AwareLock
 * that it waits for (src/coreclr/vm/threads.h, syncblk.h in dotnet/runtime). No runtime describes where the Thread has
 * it, so each use is proved: the item names the AppDomain; the AwareLock says which entry of the table of locks it is,
 * and the entry says the same of it; the owner is named twice.
 */
#include "runtime/coreclr/monitors.h"

#define TO_ENTER 0u              /* the kind of an item: others wait for a pulse */
#define FOREVER UINT32_MAX
#define LOCKED 1u
#define INDEX 0x7fffffffu        /* of a lock in the table; another bit is above */
#define IS_FREE UINT64_C(1)      /* an entry's object leads to the next free entry */

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
} items[] = { { 8, 1192 }, { 9, 1032 }, { 10, 672 } };

static bool read_item(const struct sf_clr_naming *naming, unsigned major, uint64_t thread, struct item *ret)
{
	uint64_t address = 0, domain;

	for (size_t i = 0; i < sizeof(items) / sizeof(items[0]); i++) {
		if (items[i].major == major && !sf_read_u64(naming->memory, thread + items[i].at, &address))
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
