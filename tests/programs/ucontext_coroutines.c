/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Coroutines on stacks of their own (makecontext, swapcontext), each some frames deep, passing
 * the CPU round. The walk must end at the coroutine's first frame and not run on into the heap.
 *
 * ucontext_coroutines [spin|pause]
 */
#include <ucontext.h>

#include "program.h"

#define N 8

static ucontext_t home, contexts[N];
static unsigned current;
static bool asleep;
static unsigned long rounds;

static NOINLINE void yield_to_next(void)
{
	unsigned from = current;

	current = (current + 1) % N;
	swapcontext(&contexts[from], &contexts[current]);
}

static NOINLINE void coroutine_work(unsigned depth)
{
	if (depth > 0) {
		coroutine_work(depth - 1);
		NO_TAIL_CALL();
		return;
	}
	for (;;) {
		for (volatile unsigned i = 0; i < 2000; i++)
			;
		if (asleep && ++rounds > 100) {
			ready();
			stay(true);
		}
		yield_to_next();
	}
}

static void coroutine_main(int number)
{
	coroutine_work(number + 2);
	NO_TAIL_CALL();
}

int main(int argc, char **argv)
{
	asleep = !argument_is(argc, argv, 1, "spin");
	bounded(120);
	for (int i = 0; i < N; i++) {
		getcontext(&contexts[i]);
		contexts[i].uc_stack.ss_size = 1 << 16;
		contexts[i].uc_stack.ss_sp = malloc(1 << 16);
		contexts[i].uc_link = &home;
		makecontext(&contexts[i], (void (*)(void))coroutine_main, 1, i);
	}
	if (!asleep)
		ready();
	swapcontext(&home, &contexts[0]);
	return 1;
}
