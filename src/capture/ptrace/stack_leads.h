/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A thread can leave its stack for another one and come back, as it does for a signal's handler on an alternate stack.
 * Then a word of the stack that it is on points to the stack that it left. That word is at the same address each time: at the
 * top of the alternate stack, of Go's g0, of the like. A lead is the address of such a word.
 *
 * The frame pointer may point there, too: then that register is the lead.
 *
 * A walk that ends because the other stack was not copied finds the lead. From then on, copies follow it while the thread
 * stands. The walking thread finds leads, and the holding thread follows them.
 */
#ifndef SF_CAPTURE_PTRACE_STACK_LEADS_H
#define SF_CAPTURE_PTRACE_STACK_LEADS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define SF_MAX_OTHER_STACKS 3

#define SF_LEAD_FP 1 /* instead of an address: the frame pointer */

struct sf_still;

/* Zeroed memory has no leads. */
struct sf_stack_leads {
	_Atomic uint64_t at[SF_MAX_OTHER_STACKS]; /* 0: none */
	uint32_t n_found;                         /* the walking thread's */
};

/*
 * The size and parts of a copy: bytes of the stack that the thread is on, and leads to others. A plain struct, made
 * from the shared fields. Signal-safe.
 */
struct sf_copy_plan {
	uint32_t size;
	uint64_t root_sp;   /* of the thread's first frame, where a walk of this stack came to it: no more is needed; 0: not known */
	uint32_t n_leads;
	uint64_t leads[SF_MAX_OTHER_STACKS];
};

struct sf_copy_plan sf_stack_leads_plan(struct sf_stack_leads *leads, uint32_t size);

/*
 * A walk could not read `unread`, which is in none of the still's windows: finds the word in them that points there, or
 * a little below. False: there is none, or it is known.
 */
bool sf_stack_leads_find(struct sf_stack_leads *leads, const struct sf_still *still, uint64_t unread);

#endif
