/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The interposer for sigaltstack(). A program may give its threads alternate stacks that are smaller
 * than a signal frame of this processor. (MINSIGSTKSZ was 2,048 bytes for thirty years; with AVX-512 a
 * frame takes 3,600.) That does no harm as long as no handler of the program runs there. Our handler
 * would run there, and the kernel ends the program when the frame does not fit. So from the first such
 * stack on, our handler runs on the thread's normal stack.
 */
#include <errno.h>
#include <signal.h>

#include "agent/interpose/interpose.h"
#include "frozen/signal/chain.h"
#include "frozen/raw.h"

#define ROOM 6144 /* for the kernel's frame and our handler */

SF_INTERPOSED int sigaltstack(const stack_t *stack, stack_t *old)
{
	long error;

	if (stack && !(stack->ss_flags & SS_DISABLE) && stack->ss_size < ROOM)
		sf_chain_avoid_altstack();
	error = sf_raw2(SYS_sigaltstack, stack, old);
	if (error == 0)
		return 0;
	errno = (int)-error;
	return -1;
}
