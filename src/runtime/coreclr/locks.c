/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The object is on the stack, in the frames of the methods that wait or in what they saved of registers, since they
 * need it when the wait is over. The event or handle that carries out the wait is there, too, and a field of the object
 * leads to it. Words of calls that have returned can be there as well. So the object is the only one of its type that
 * has both; where there are several, none is taken.
 *
 * WaitHandle.WaitOne needs only the SafeWaitHandle of its object afterwards. The object may still be in a caller's
 * frame. It counts if its SafeWaitHandle is the only one in the inner frames.
 */
#include "runtime/coreclr/locks.h"

#include <string.h>

#define MAX_WORDS 1024u     /* between the leaf and the method's caller */
#define MAX_MEANS 4u

struct sf_clr_lock_type {
	const char *space, *name, *kind;
	const char *means[MAX_MEANS];    /* the fields one of which leads to what is on the stack, too */
	const char *owner;               /* the field with the id of the thread that has it; NULL: nobody has */
	bool is_system_id;               /* the system's id, and not the managed one */
	bool is_base;                    /* objects are of types that are derived from it */
	uint32_t n_callers;              /* the object may be in the frames of so many callers of the method; what it leads to is not */
};

/* To add one: an object, its name in locks.h, and lines in waits.c. */
const struct sf_clr_lock_type sf_clr_type_lock = {
	.space = "System.Threading", .name = "Lock", .kind = "lock", .means = { "_waitEvent" }, .owner = "_owningThreadId",
	.is_system_id = true,
};
const struct sf_clr_lock_type sf_clr_type_slim_lock = {
	.space = "System.Threading", .name = "ReaderWriterLockSlim", .kind = "read-write lock",
	.means = { "_writeEvent", "_readEvent", "_upgradeEvent", "_waitUpgradeEvent" }, .owner = "_writeLockOwnerId",
};
const struct sf_clr_lock_type sf_clr_type_thread = {
	.space = "System.Threading", .name = "Thread", .kind = SF_WAIT_FOR_END, .means = { "_DONT_USE_InternalThread" },
	.owner = "_managedThreadId",
};
const struct sf_clr_lock_type sf_clr_type_handle = {
	.space = "System.Threading", .name = "WaitHandle", .kind = "handle", .means = { "_waitHandle" }, .is_base = true,
	.n_callers = 2,
};

struct stack {
	uint64_t words[MAX_WORDS];
	size_t n, n_inner;               /* words, and those up to the frame of the method's caller */
};

/* From the leaf to this frame; 0: it cannot be read. */
static size_t words_to(const struct sf_trace *trace, uint32_t frame)
{
	const uint64_t start = trace->n_frames ? trace->frames[0].sp : 0,
		       end = frame < trace->n_frames ? trace->frames[frame].sp : 0;

	return end > start && start % 8 == 0 && (end - start) / 8 <= MAX_WORDS ? (end - start) / 8 : 0;
}

static bool read_stack(const struct sf_clr_naming *naming, const struct sf_trace *trace, uint32_t at, uint32_t n_callers,
		       struct stack *ret)
{
	ret->n_inner = words_to(trace, at + 1);
	ret->n = words_to(trace, at + 1 + n_callers);
	if (ret->n < ret->n_inner)
		ret->n = ret->n_inner;
	return ret->n_inner && sf_read(naming->memory, ret->words, trace->frames[0].sp, ret->n * sizeof(ret->words[0]));
}

static bool has(const struct stack *stack, uint64_t word)
{
	for (size_t i = 0; i < stack->n_inner; i++) {
		if (stack->words[i] == word)
			return true;
	}
	return false;
}

static bool is_of(const struct sf_clr_naming *naming, uint64_t table, const struct sf_clr_lock_type *type)
{
	for (unsigned i = 0; table && i < SF_CLR_MAX_BASES; i++, table = sf_clr_base_type(naming, table)) {
		if (sf_clr_is_type(naming, table, type->space, type->name))
			return true;
		if (!type->is_base)
			return false;
	}
	return false;
}

/* Whether the inner frames have no other object of its type. */
static bool is_only(const struct sf_clr_naming *naming, const struct stack *stack, uint64_t object)
{
	const uint64_t table = sf_clr_table_of(naming, object);

	for (size_t i = 0; i < stack->n_inner; i++) {
		if (stack->words[i] != object && sf_clr_table_of(naming, stack->words[i]) == table)
			return false;
	}
	return table;
}

/* Whether what the wait is carried out by is on the stack. */
static bool has_means(const struct sf_clr_naming *naming, const struct stack *stack, uint64_t object, uint64_t table,
		      const struct sf_clr_lock_type *type)
{
	for (size_t i = 0; i < MAX_MEANS && type->means[i]; i++) {
		uint64_t means;
		uint32_t at;

		if (sf_clr_find_field(naming, table, type->means[i], &at) && sf_read_u64(naming->memory, object + at, &means) &&
		    means && has(stack, means) && (!type->n_callers || is_only(naming, stack, means)))
			return true;
	}
	return false;
}

/* Whether the thread itself is this object: it does not wait for its own end. */
static bool is_self(const struct sf_clr_naming *naming, uint64_t object, uint64_t table, uint64_t self)
{
	uint64_t native;
	uint32_t at;

	return sf_clr_find_field(naming, table, "_DONT_USE_InternalThread", &at) &&
	       sf_read_u64(naming->memory, object + at, &native) && native == self;
}

/* 0: there is none, or there are several. */
static uint64_t find_object(const struct sf_clr_naming *naming, const struct stack *stack, uint64_t self,
			    const struct sf_clr_lock_type *type)
{
	uint64_t found = 0;

	for (size_t i = 0; i < stack->n; i++) {
		const uint64_t object = stack->words[i], table = object != found ? sf_clr_table_of(naming, object) : 0;

		if (!table || !is_of(naming, table, type) || !has_means(naming, stack, object, table, type) ||
		    is_self(naming, object, table, self))
			continue;
		if (found)
			return 0;
		found = object;
	}
	return found;
}

static bool read_id(const struct sf_clr_naming *naming, uint64_t object, const char *field, uint32_t *ret)
{
	uint32_t at;

	return sf_clr_find_field(naming, sf_clr_table_of(naming, object), field, &at) &&
	       sf_read(naming->memory, ret, object + at, sizeof(*ret)) && *ret;
}

/* The id that the managed object of a Thread has. */
static bool read_managed_id(const struct sf_clr_naming *naming, uint64_t thread, uint32_t *ret)
{
	uint64_t handle, object;

	return sf_clr_get(&naming->description->layout, naming->memory, SF_CLR_THREAD_OBJECT, thread, &handle) && handle &&
	       sf_read_u64(naming->memory, handle, &object) && read_id(naming, object, "_managedThreadId", ret);
}

/* 0: nobody has the object, or the ids are not known. */
static int32_t find_owner(const struct sf_clr_naming *naming, const struct sf_clr_threads *threads, uint64_t object,
			  const struct sf_clr_lock_type *type)
{
	uint32_t id, its;

	if (!type->owner || !read_id(naming, object, type->owner, &id))
		return 0;
	if (type->is_system_id)
		return id <= INT32_MAX && sf_clr_threads_find(threads, (int32_t)id) ? (int32_t)id : 0;
	for (size_t i = 0; i < threads->items.n; i++) {
		if (read_managed_id(naming, threads->items.items[i].thread, &its) && its == id)
			return threads->items.items[i].tid;
	}
	return 0;
}

bool sf_clr_object_wait(const struct sf_clr_naming *naming, const struct sf_clr_threads *threads, uint64_t self,
			const struct sf_clr_lock_type *type, const struct sf_trace *trace, uint32_t at, struct sf_lock_wait *ret)
{
	struct stack stack;
	uint64_t object, table;

	*ret = (struct sf_lock_wait){ 0 };
	if (!sf_clr_is_still(naming) || !read_stack(naming, trace, at, type->n_callers, &stack))
		return false;
	object = find_object(naming, &stack, self, type);
	table = sf_clr_table_of(naming, object);
	if (!table)
		return false;
	ret->kind = type->kind;
	ret->owner = find_owner(naming, threads, object, type);
	if (strcmp(type->kind, SF_WAIT_FOR_END) == 0)
		return ret->owner;
	ret->address = object;
	sf_clr_name_type(naming, table, ret->of, sizeof(ret->of));
	if (ret->of[0] == '?')
		ret->of[0] = 0;
	return true;
}
