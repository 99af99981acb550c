/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The interposer for sigaltstack(). Our handler runs on a thread's alternate stack, if it has one. A program may have
 * alternate stacks on which that would do harm; from the first such stack on it runs on the thread's normal stack:
 *
 * - Stacks that are smaller than a signal frame of this processor. (MINSIGSTKSZ was 2,048 bytes for thirty years; with AVX-512
 *   a frame takes 3,600.) They do no harm as long as no handler of the program runs there. The kernel ends the program when
 *   our frame does not fit.
 * - A stack that several threads share. That does no harm if only a handler of faults runs there, which ends the program:
 *   varnish's threads do so. Our handlers in two threads would overwrite each other's frames.
 */
#include <errno.h>
#include <signal.h>

#include "agent/interpose/interpose.h"
#include "frozen/signal/chain.h"
#include "frozen/raw.h"

#define ROOM 6144 /* for the kernel's frame and our handler */

/*
 * Which thread has which stack: the page where the stack begins, and the thread's id, in a place that depends on the page. A
 * stack that is large enough has no other one in the page where it begins. Of two stacks with one place the last one is known.
 */
#define N_STACKS 1024u
#define PAGE_BITS 12
#define TID_BITS 22 /* PID_MAX_LIMIT in the kernel's include/linux/threads.h */
#define TID_MASK ((UINT64_C(1) << TID_BITS) - 1)

static _Atomic uint64_t stacks[N_STACKS];

static uint64_t page_of(const stack_t *stack)
{
	return (uint64_t)(uintptr_t)stack->ss_sp >> PAGE_BITS << TID_BITS;
}

static _Atomic uint64_t *place_of(uint64_t page)
{
	return &stacks[(page * UINT64_C(0x9e3779b97f4a7c15)) >> 54];
}

static bool is_used(const stack_t *stack)
{
	return stack && !(stack->ss_flags & SS_DISABLE);
}

/* The thread has this stack from now on. True if another thread has it, which lives and has not given it up. */
static bool is_shared(const stack_t *stack)
{
	const uint64_t page = page_of(stack), tid = (uint64_t)sf_raw0(SYS_gettid);
	const uint64_t before = atomic_exchange(place_of(page), page | tid), other = before & TID_MASK;

	return (before & ~TID_MASK) == page && other && other != tid &&
	       sf_raw3(SYS_tgkill, sf_raw0(SYS_getpid), (long)other, 0) == 0;
}

/* The thread has given this stack up: another thread may have it next. */
static void forget(const stack_t *before, const stack_t *now)
{
	uint64_t known = page_of(before) | (uint64_t)sf_raw0(SYS_gettid);

	if (is_used(before) && (!is_used(now) || page_of(now) != page_of(before)))
		atomic_compare_exchange_strong(place_of(page_of(before)), &known, 0);
}

static void set_mask(const uint64_t *mask, uint64_t *before)
{
	sf_raw4(SYS_rt_sigprocmask, SIG_SETMASK, mask, before, sizeof(*mask));
}

/* No tick comes to the new stack before it is looked at, which is when the kernel has taken it: it may be nowhere in memory. */
SF_INTERPOSED int sigaltstack(const stack_t *stack, stack_t *old)
{
	const uint64_t all = UINT64_MAX;
	stack_t before, now, *into = old && old != stack ? old : &before;
	uint64_t mask;
	long error;

	if (stack)
		set_mask(&all, &mask);
	error = sf_raw2(SYS_sigaltstack, stack, into);
	if (error == 0 && stack) {
		now = *stack;
		if (is_used(&now) && (is_shared(&now) || now.ss_size < ROOM))
			sf_chain_avoid_altstack();
		forget(into, &now);
	}
	if (stack)
		set_mask(&mask, NULL);
	if (error == 0 && old)
		*old = *into;
	if (error == 0)
		return 0;
	errno = (int)-error;
	return -1;
}
