/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shadow stacks: what the enter and leave hooks of .NET's runtime have noted of each thread's managed frames (--dotnet-walk
 * shadow). A frame is identified by the stack pointer that its method has when it calls the enter hook.
 *
 * One thread writes each stack: its own, in hooks (agent/coreclr/shadow_writer.h). Any thread reads it, at any moment,
 * without a lock. A stack is a ring: of a thread with more frames than `depth` it keeps the innermost ones.
 *
 * Consistency. One word of a stack has its number of entries, its next place and a version. A writer changes entries
 * only outside the range that the word names, and stores the word last. Each store has a new version. So entries that
 * were copied between two loads of the same word are those of that word. A thread that is held between two instructions
 * of a hook has the entries of its last store.
 */
#ifndef SF_FROZEN_CORECLR_SHADOW_STACK_H
#define SF_FROZEN_CORECLR_SHADOW_STACK_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "frozen/signal/state.h"
#include "frozen/trace.h"

#define SF_SHADOW_THREADS 1024          /* stacks */
#define SF_SHADOW_LOG2_PLACES 12        /* of the table that leads from a thread to its stack */
#define SF_SHADOW_MAX_DEPTH 16384       /* entries of a stack; below 2 to the power of 16 */

struct sf_shadow_entry {
	_Atomic uint64_t pc;            /* a return address in the method's code */
	_Atomic uint64_t frame;         /* the method's stack pointer, below that of its caller; 0: an exception has unwound it */
	uint64_t function;              /* FunctionID; the writer's */
};

/* Frames that are being unwound at once: a finally block may throw, and catch. */
#define SF_SHADOW_UNWINDS 16

struct sf_shadow_stack {
	_Atomic uint64_t word;          /* below */
	struct sf_shadow_entry *entries;
	uint32_t mask;                  /* the number of entries, a power of two, minus one */

	/* The writer's. */
	uint32_t n_unwinds;
	uint64_t unwinds[SF_SHADOW_UNWINDS]; /* frames, the last one begun last; 0: of a method without an entry */
	uint64_t base;                  /* the frame of the outermost entry that the stack had when its entries began to be lost */
};

/* Of a thread; `thread` is its thread pointer (x86-64 psABI, section 3.4.6). 0: free, 1: was used. */
struct sf_shadow_place {
	_Atomic uint64_t thread;
	uint32_t stack;                 /* SF_SHADOW_THREADS: none was free */
	uint64_t owner;                 /* of the stack, when the thread took it: another thread may have taken it since */
};

struct sf_shadow_table {
	struct sf_shadow_place places[1u << SF_SHADOW_LOG2_PLACES];
	/* Whose stack: a thread's id, 0: free; above that, in the upper half, how often the stack was taken. */
	_Atomic uint64_t owners[SF_SHADOW_THREADS];
	_Atomic uint32_t n_used;        /* stacks that a thread has had, the first ones */
	_Atomic uint32_t n_without;     /* threads for which none was free */
	struct sf_shadow_stack stacks[SF_SHADOW_THREADS];
};

/* Set before the first hook runs, for the life of the process. NULL: no hooks. */
extern struct sf_shadow_table *_Atomic sf_shadow_table;

/* --- the word --- */

static inline uint32_t sf_shadow_n(uint64_t word)
{
	return word & 0xffff;
}

static inline uint32_t sf_shadow_top(uint64_t word)
{
	return word >> 16 & 0xffff;
}

/* Outer entries have been lost. */
static inline bool sf_shadow_is_cut(uint64_t word)
{
	return word >> 32 & 1;
}

static inline uint64_t sf_shadow_word(uint64_t before, uint32_t n, uint32_t top, bool cut)
{
	return ((before >> 33) + 1) << 33 | (uint64_t)cut << 32 | (uint64_t)top << 16 | n;
}

/* The entry so many places below the innermost one. */
static inline struct sf_shadow_entry *sf_shadow_entry(const struct sf_shadow_stack *stack, uint64_t word, uint32_t below)
{
	return &stack->entries[(sf_shadow_top(word) - 1 - below) & stack->mask];
}

static inline int32_t sf_shadow_tid(uint64_t owner)
{
	return (int32_t)(uint32_t)owner;
}

/* --- readers: signal-safe, any thread --- */

/* The stack of this thread, or NULL. */
const struct sf_shadow_stack *sf_shadow_find(const struct sf_shadow_table *table, int32_t tid);

enum sf_shadow_read { SF_SHADOW_READ, SF_SHADOW_CHANGED };

/*
 * Adds the entries whose frames are at `sp` or above, innermost first, to the trace: pc and sp of each; trace->end is
 * SF_END_ROOT, or SF_END_DEPTH where entries were lost or the trace is full. SF_SHADOW_CHANGED: the thread ran
 * meanwhile, and the trace is as it was.
 */
enum sf_shadow_read sf_shadow_read(const struct sf_shadow_stack *stack, uint64_t sp, struct sf_trace *trace);

/*
 * The walk of a held thread by its shadow stack: our own walk has the native frames above the innermost managed one, and the
 * shadow stack has the managed frames. A thread without one, or whose shadow stack is empty, is walked as always. Signal-safe.
 */
sf_held_walk_fn sf_shadow_walk;

#endif
