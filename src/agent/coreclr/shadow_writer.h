/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The writing side of shadow stacks (frozen/coreclr/shadow_stack.h): what a thread notes of its own stack in a hook,
 * and which stack is whose.
 *
 * The functions run between two instructions of managed code, in a thread that a collection waits for. So they take no
 * lock, allocate nothing, call nothing outside, and are compiled to use general registers only: a hook saves these, and
 * the others keep their values.
 */
#ifndef SF_AGENT_CORECLR_SHADOW_WRITER_H
#define SF_AGENT_CORECLR_SHADOW_WRITER_H

#include "frozen/coreclr/shadow_stack.h"

/*
 * The stack of the calling thread, whose thread pointer this is. The first call of a thread finds a free stack, or one
 * of a thread that has ended, among those of process `pid`. NULL: there is none.
 */
struct sf_shadow_stack *sf_shadow_own(struct sf_shadow_table *table, uint64_t thread, int32_t pid);
/* The calling thread is a new one, and what is there of its thread pointer was another's. */
void sf_shadow_begin_thread(struct sf_shadow_table *table, uint64_t thread);

/*
 * A method is entered, at this pc, with this stack pointer. Entries that are not above its frame belong to methods that
 * were left without a hook.
 */
void sf_shadow_enter(struct sf_shadow_stack *stack, uint64_t function, uint64_t pc, uint64_t frame);
/* A method is left, by a return or a tail call. Entries below its frame belong to methods that were left without a hook. */
void sf_shadow_leave(struct sf_shadow_stack *stack, uint64_t function, uint64_t frame);

/*
 * Exceptions. The frames that one unwinds stay in the stack's memory, above the code that handles it: their stack
 * pointers do not show that they are left. Methods without a hook are unwound, too.
 */
void sf_shadow_unwind_begins(struct sf_shadow_stack *stack, uint64_t function); /* its finally blocks run next */
void sf_shadow_unwind_ends(struct sf_shadow_stack *stack);                      /* the one that began last */
void sf_shadow_caught(struct sf_shadow_stack *stack);                           /* ... whose catch block runs next instead */

#endif
