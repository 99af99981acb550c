/* SPDX-License-Identifier: Apache-2.0 */
/* What hooks do: they find the thread's shadow stack, and note on it which methods are entered and left. */
#include "agent/coreclr/shadow_writer.h"

#include <stddef.h>

#include "agent/coreclr/clr_hooks.h"
#include "frozen/memory/hash.h"
#include "frozen/raw.h"
#include "frozen/signal/state.h"

#define WINDOW 32u                      /* places that a thread's may be behind the first one */
#define WAS_USED 1u

/* --- the stack's word --- */

static uint64_t word_of(const struct sf_shadow_stack *stack)
{
	return atomic_load_explicit(&stack->word, memory_order_relaxed);
}

static void store(struct sf_shadow_stack *stack, uint32_t n, uint32_t top, bool cut)
{
	atomic_store_explicit(&stack->word, sf_shadow_word(word_of(stack), n, top & stack->mask, cut), memory_order_release);
}

static uint64_t frame_of(const struct sf_shadow_entry *entry)
{
	return atomic_load_explicit(&entry->frame, memory_order_relaxed);
}

/* NULL: the stack is empty. */
static struct sf_shadow_entry *innermost(const struct sf_shadow_stack *stack)
{
	const uint64_t word = word_of(stack);

	return sf_shadow_n(word) ? sf_shadow_entry(stack, word, 0) : NULL;
}

static void pop(struct sf_shadow_stack *stack)
{
	const uint64_t word = word_of(stack);

	store(stack, sf_shadow_n(word) - 1, sf_shadow_top(word) - 1, sf_shadow_is_cut(word));
}

static uint64_t outermost_frame(const struct sf_shadow_stack *stack, uint64_t word)
{
	uint64_t frame = 0;

	for (uint32_t i = sf_shadow_n(word); !frame && i; i--)
		frame = frame_of(sf_shadow_entry(stack, word, i - 1));
	return frame;
}

/* The outermost entry gives its place to the next one. */
static void cut(struct sf_shadow_stack *stack)
{
	const uint64_t word = word_of(stack);

	if (!sf_shadow_is_cut(word))
		stack->base = outermost_frame(stack, word);
	store(stack, stack->mask, sf_shadow_top(word), true);
}

/* --- methods --- */

static void drop_below(struct sf_shadow_stack *stack, uint64_t frame)
{
	for (const struct sf_shadow_entry *entry = innermost(stack); entry && frame_of(entry) < frame; entry = innermost(stack))
		pop(stack);
}

/* Where the thread stands at the outermost frame again, nothing is lost any more. */
static void mend(struct sf_shadow_stack *stack, uint64_t frame)
{
	const uint64_t word = word_of(stack);

	if (sf_shadow_is_cut(word) && !sf_shadow_n(word) && frame >= stack->base)
		store(stack, 0, sf_shadow_top(word), false);
}

void sf_shadow_enter(struct sf_shadow_stack *stack, uint64_t function, uint64_t pc, uint64_t frame)
{
	struct sf_shadow_entry *entry;
	uint64_t word;

	drop_below(stack, frame + 1);
	mend(stack, frame);
	if (sf_shadow_n(word_of(stack)) > stack->mask)
		cut(stack);
	word = word_of(stack);
	entry = &stack->entries[sf_shadow_top(word)];
	atomic_thread_fence(memory_order_release); /* the word is stored before the entry, for readers of the word before it */
	atomic_store_explicit(&entry->pc, pc, memory_order_relaxed);
	atomic_store_explicit(&entry->frame, frame, memory_order_relaxed);
	entry->function = function;
	store(stack, sf_shadow_n(word) + 1, sf_shadow_top(word) + 1, sf_shadow_is_cut(word));
}

void sf_shadow_leave(struct sf_shadow_stack *stack, uint64_t function, uint64_t frame)
{
	const struct sf_shadow_entry *entry;

	drop_below(stack, frame);
	entry = innermost(stack);
	if (entry && entry->function == function)
		pop(stack);
	mend(stack, frame);
}

/*
 * --- exceptions ---
 *
 * The runtime's calls nest: each unwind_begins has its unwind_ends, or the catch block of the same method begins. Where
 * a finally block throws, its frame begins again, and ends once. Entries of the runtime's own managed code that handles
 * exceptions may be above the frame.
 */

/* The innermost entry of this method, of those that are not unwound. NULL: there is none. */
static struct sf_shadow_entry *find_function(const struct sf_shadow_stack *stack, uint64_t function)
{
	const uint64_t word = word_of(stack);

	for (uint32_t i = 0; i < sf_shadow_n(word); i++) {
		struct sf_shadow_entry *entry = sf_shadow_entry(stack, word, i);

		if (entry->function == function && frame_of(entry))
			return entry;
	}
	return NULL;
}

static struct sf_shadow_entry *find_frame(const struct sf_shadow_stack *stack, uint64_t frame)
{
	const uint64_t word = word_of(stack);

	for (uint32_t i = 0; i < sf_shadow_n(word); i++) {
		struct sf_shadow_entry *entry = sf_shadow_entry(stack, word, i);

		if (frame_of(entry) == frame)
			return entry;
	}
	return NULL;
}

/* Forgets the unwindings of frames that are not above this one: an exception in their finally blocks has left them. */
static void forget_left(struct sf_shadow_stack *stack, uint64_t frame)
{
	uint32_t n = 0;

	while (n < stack->n_unwinds && n < SF_SHADOW_UNWINDS && !(stack->unwinds[n] && stack->unwinds[n] <= frame))
		n++;
	if (n < SF_SHADOW_UNWINDS)
		stack->n_unwinds = n;
}

void sf_shadow_unwind_begins(struct sf_shadow_stack *stack, uint64_t function)
{
	const struct sf_shadow_entry *entry = find_function(stack, function);
	const uint64_t frame = entry ? frame_of(entry) : 0;

	if (frame)
		forget_left(stack, frame);
	if (stack->n_unwinds < SF_SHADOW_UNWINDS)
		stack->unwinds[stack->n_unwinds] = frame;
	stack->n_unwinds++;
}

/* The frame that began last, 0: none that has an entry. */
static uint64_t take_unwind(struct sf_shadow_stack *stack)
{
	if (!stack->n_unwinds)
		return 0;
	return --stack->n_unwinds < SF_SHADOW_UNWINDS ? stack->unwinds[stack->n_unwinds] : 0;
}

void sf_shadow_unwind_ends(struct sf_shadow_stack *stack)
{
	const uint64_t frame = take_unwind(stack), word = word_of(stack);
	struct sf_shadow_entry *entry = frame ? find_frame(stack, frame) : NULL;

	if (!entry)
		return;
	store(stack, sf_shadow_n(word), sf_shadow_top(word), sf_shadow_is_cut(word));
	atomic_thread_fence(memory_order_release);
	atomic_store_explicit(&entry->frame, 0, memory_order_relaxed);
}

void sf_shadow_caught(struct sf_shadow_stack *stack)
{
	take_unwind(stack);
}

/* --- threads --- */

/* Whether a thread of the process has this id. */
static bool is_there(int32_t pid, int32_t tid)
{
	return sf_raw3(SYS_tgkill, pid, tid, 0) != -ESRCH;
}

static void empty(struct sf_shadow_stack *stack)
{
	store(stack, 0, 0, false);
	stack->n_unwinds = 0;
}

/* From this owner, if it still is the owner. */
static bool take(struct sf_shadow_table *table, uint32_t i, uint64_t from, int32_t tid)
{
	const uint64_t owner = ((from >> 32) + 1) << 32 | (uint32_t)tid;
	uint32_t n = atomic_load(&table->n_used);

	if (!atomic_compare_exchange_strong(&table->owners[i], &from, owner))
		return false;
	empty(&table->stacks[i]);
	while (n <= i && !atomic_compare_exchange_weak(&table->n_used, &n, i + 1))
		;
	return true;
}

/* A stack of the thread that has, or had, the id `from`; 0: a free one. */
static bool take_from(struct sf_shadow_table *table, int32_t from, int32_t tid, uint32_t *ret)
{
	for (uint32_t i = 0; i < SF_SHADOW_THREADS; i++) {
		const uint64_t owner = atomic_load(&table->owners[i]);

		*ret = i;
		if (sf_shadow_tid(owner) == from && take(table, i, owner, tid))
			return true;
	}
	return false;
}

static bool take_ended(struct sf_shadow_table *table, int32_t pid, int32_t tid, uint32_t *ret)
{
	for (uint32_t i = 0; i < SF_SHADOW_THREADS; i++) {
		const uint64_t owner = atomic_load(&table->owners[i]);

		*ret = i;
		if (!is_there(pid, sf_shadow_tid(owner)) && take(table, i, owner, tid))
			return true;
	}
	return false;
}

/*
 * First that of an ended thread that had the same id: readers find a thread by its id. SF_SHADOW_THREADS: all threads that have
 * one are still there.
 */
static uint32_t take_stack(struct sf_shadow_table *table, int32_t pid, int32_t tid)
{
	uint32_t i;

	if (take_from(table, tid, tid, &i) || take_from(table, 0, tid, &i) || take_ended(table, pid, tid, &i))
		return i;
	atomic_fetch_add(&table->n_without, 1);
	return SF_SHADOW_THREADS;
}

/* The thread's place; if it has none, a free one that is its from now on: *new_ret. NULL: none is free. */
static struct sf_shadow_place *find_place(struct sf_shadow_table *table, uint64_t thread, bool *new_ret)
{
	const uint64_t first = sf_hash(thread, SF_SHADOW_LOG2_PLACES);
	struct sf_shadow_place *free_place = NULL;

	*new_ret = false;
	for (unsigned i = 0; i < WINDOW; i++) {
		struct sf_shadow_place *place = &table->places[(first + i) % (1u << SF_SHADOW_LOG2_PLACES)];
		const uint64_t owner = atomic_load_explicit(&place->thread, memory_order_relaxed);

		if (owner == thread)
			return place;
		if (owner <= WAS_USED && !free_place)
			free_place = place;
		if (!owner)
			break;
	}
	*new_ret = true;
	return free_place;
}

static struct sf_shadow_place *claim(struct sf_shadow_table *table, struct sf_shadow_place *place, uint64_t thread, int32_t pid)
{
	uint64_t before = place ? atomic_load(&place->thread) : thread;

	/* Another thread took the place: this one gets its place in its next hook. */
	if (before > WAS_USED || !atomic_compare_exchange_strong(&place->thread, &before, thread))
		return NULL;
	place->stack = take_stack(table, pid, (int32_t)sf_raw0(SYS_gettid));
	place->owner = place->stack < SF_SHADOW_THREADS ? atomic_load(&table->owners[place->stack]) : 0;
	return place;
}

static struct sf_shadow_place *find_or_claim(struct sf_shadow_table *table, uint64_t thread, int32_t pid)
{
	bool is_new;
	struct sf_shadow_place *place = find_place(table, thread, &is_new);

	return is_new ? claim(table, place, thread, pid) : place;
}

struct sf_shadow_stack *sf_shadow_own(struct sf_shadow_table *table, uint64_t thread, int32_t pid)
{
	struct sf_shadow_place *place = &table->places[sf_hash(thread, SF_SHADOW_LOG2_PLACES)];

	if (atomic_load_explicit(&place->thread, memory_order_relaxed) != thread)
		place = find_or_claim(table, thread, pid);
	return place && place->stack < SF_SHADOW_THREADS ? &table->stacks[place->stack] : NULL;
}

void sf_shadow_begin_thread(struct sf_shadow_table *table, uint64_t thread)
{
	bool is_new;
	struct sf_shadow_place *place = find_place(table, thread, &is_new);
	uint64_t owner;

	if (is_new)
		return;
	owner = place->owner;
	/* Where another thread has taken the stack, it keeps it. */
	if (place->stack < SF_SHADOW_THREADS)
		atomic_compare_exchange_strong(&table->owners[place->stack], &owner, owner >> 32 << 32);
	atomic_store(&place->thread, WAS_USED);
}

/* --- the hooks --- */

_Atomic uint8_t sf_clr_hooks_on;

static struct sf_shadow_stack *own_stack(uint64_t thread)
{
	struct sf_shadow_table *table = atomic_load_explicit(&sf_shadow_table, memory_order_acquire);

	return table ? sf_shadow_own(table, thread, sf_handler.config.pid) : NULL;
}

/* The method's stack pointer, when the hook has returned. */
static uint64_t frame_at(const uint64_t *return_address)
{
	return (uint64_t)(uintptr_t)(return_address + 1);
}

void sf_clr_hooked_enter(uint64_t function, const uint64_t *return_address, uint64_t thread)
{
	struct sf_shadow_stack *stack = own_stack(thread);

	if (stack)
		sf_shadow_enter(stack, function, *return_address, frame_at(return_address));
}

void sf_clr_hooked_leave(uint64_t function, const uint64_t *return_address, uint64_t thread)
{
	struct sf_shadow_stack *stack = own_stack(thread);

	if (stack)
		sf_shadow_leave(stack, function, frame_at(return_address));
}
