/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Inlined calls: `innermost` is inlined into `middle`, that into `outer`, that into `caller`, which is a
 * function of its own. The stack has one return address for four functions; a profile shows all
 * four, with the line of each call.
 *
 * inlined [spin|pause]
 */
#include "program.h"

static bool asleep;

static inline __attribute__((always_inline)) void innermost(volatile unsigned *counter)
{
	if (asleep)
		pause();
	(*counter)++;
}

static inline __attribute__((always_inline)) void middle(volatile unsigned *counter)
{
	innermost(counter);
	(*counter) ^= 3;
}

static inline __attribute__((always_inline)) void outer(volatile unsigned *counter)
{
	middle(counter);
	(*counter) ^= 5;
}

static NOINLINE void caller(void)
{
	volatile unsigned counter = 0;

	for (;;)
		outer(&counter);
}

int main(int argc, char **argv)
{
	asleep = !argument_is(argc, argv, 1, "spin");
	bounded(120);
	ready();
	caller();
}
