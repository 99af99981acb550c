/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Recursion, N calls deep, through two functions in turn, and then it stays there: spinning, asleep, or
 * (`wave`) going up and down all the time. In the first thread, and in so many others.
 *
 * deep DEPTH [spin|pause|wave [OTHERS]]
 */
#include <pthread.h>

#include "program.h"

static bool asleep, wave;

static NOINLINE unsigned down_odd(unsigned depth);

static NOINLINE unsigned bottom(void)
{
	if (!wave) {
		ready();
		stay(asleep);
	}
	for (volatile unsigned i = 0; i < 300; i++)
		;
	return 1;
}

static NOINLINE unsigned down_even(unsigned depth)
{
	volatile unsigned local = depth;
	unsigned result = depth == 0 ? bottom() : down_odd(depth - 1);

	NO_TAIL_CALL();
	return result + local;
}

static NOINLINE unsigned down_odd(unsigned depth)
{
	volatile unsigned local[5] = { depth };
	unsigned result = depth == 0 ? bottom() : down_even(depth - 1);

	NO_TAIL_CALL();
	return result + local[0];
}

static void *go_down(void *depth)
{
	for (;;)
		KEEP(down_even(*(unsigned *)depth));
	return NULL;
}

int main(int argc, char **argv)
{
	unsigned depth = argument(argc, argv, 1, 100), others = argument(argc, argv, 3, 0);
	pthread_t thread;

	wave = argument_is(argc, argv, 2, "wave");
	asleep = !wave && !argument_is(argc, argv, 2, "spin");
	bounded(120);
	if (wave)
		ready();
	for (unsigned i = 0; i < others; i++)
		pthread_create(&thread, NULL, go_down, &depth);
	go_down(&depth);
}
