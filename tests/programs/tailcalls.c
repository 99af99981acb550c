/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tail calls: at -O2 these functions jump to the next instead of calling it, so they are not
 * on the stack, and the return address is that of the last real caller. A function that calls itself in the last
 * place becomes a loop. A profiler must show what is there and invent nothing.
 *
 * tailcalls [spin|pause]
 */
#include "program.h"

static bool asleep;

static NOINLINE unsigned last(unsigned n)
{
	if (asleep && n > 1000) {
		ready();
		stay(true);
	}
	for (volatile unsigned i = 0; i < 100; i++)
		;
	return n + 1;
}

static NOINLINE unsigned jump_c(unsigned n)
{
	return last(n ^ 1);
}

static NOINLINE unsigned jump_b(unsigned n)
{
	return n % 3 ? jump_c(n) : last(n);
}

static NOINLINE unsigned jump_a(unsigned n)
{
	return n % 2 ? jump_b(n) : jump_c(n);
}

static NOINLINE unsigned real_caller(unsigned n)
{
	unsigned result = jump_a(n);

	NO_TAIL_CALL();
	return result + 1;
}

/* The call in the last place of a function that never returns: the return address is past its end. */
static NOINLINE __attribute__((noreturn)) void never_returns(void)
{
	for (unsigned n = 0;; n++)
		KEEP(real_caller(n));
}

int main(int argc, char **argv)
{
	asleep = !argument_is(argc, argv, 1, "spin");
	bounded(120);
	if (!asleep)
		ready();
	never_returns();
}
