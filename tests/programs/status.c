/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ends as it is told, after spinning for a while: with an exit status, or by a signal. The status that a launched command must
 * show to the outside.
 *
 * status exit N | signal N | sigint (counts one SIGINT, then exits 0; without one 3)
 */
#include "program.h"

static volatile sig_atomic_t interrupts;

static void on_interrupt(int signal)
{
	(void)signal;
	interrupts++;
}

int main(int argc, char **argv)
{
	int n = argument(argc, argv, 2, 0);
	int64_t end = now_ns() + 300000000;

	bounded(30);
	if (argument_is(argc, argv, 1, "sigint")) {
		signal(SIGINT, on_interrupt);
		end += 3 * NS_PER_S;
	}
	ready();
	while (now_ns() < end && !interrupts)
		;
	if (argument_is(argc, argv, 1, "exit"))
		return n;
	if (argument_is(argc, argv, 1, "signal"))
		raise(n);
	return interrupts == 1 ? 0 : 3;
}
