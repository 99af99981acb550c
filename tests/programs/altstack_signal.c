/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A signal handler on an alternate stack, three functions deep, that stays there: the walk must
 * leave the alternate stack through the signal frame and go on where the thread was
 * interrupted, on an address that is no return address. With `nested` a second signal interrupts the handler.
 *
 * altstack_signal [spin|pause [nested]]
 */
#include "program.h"

static bool asleep, nested;

static NOINLINE void handler_leaf(int signal)
{
	if (nested && signal == SIGUSR1) {
		raise(SIGUSR2);
		return;
	}
	ready();
	stay(asleep);
}

static NOINLINE void handler_middle(int signal)
{
	handler_leaf(signal);
	NO_TAIL_CALL();
}

static void on_signal(int signal)
{
	handler_middle(signal);
	NO_TAIL_CALL();
}

static NOINLINE int interrupted_leaf(const int *nowhere)
{
	/* A fault, not a call: the interrupted address is in the middle of this function. */
	return *(volatile const int *)nowhere;
}

static NOINLINE int interrupted_caller(const int *nowhere)
{
	int value = interrupted_leaf(nowhere);

	NO_TAIL_CALL();
	return value + 1;
}

int main(int argc, char **argv)
{
	static char memory[1 << 16];
	stack_t stack = { .ss_sp = memory, .ss_size = sizeof(memory) };
	struct sigaction action = { .sa_handler = on_signal, .sa_flags = SA_ONSTACK };
	const int *volatile nowhere = NULL;

	asleep = !argument_is(argc, argv, 1, "spin");
	nested = argument_is(argc, argv, 2, "nested");
	bounded(120);
	sigaltstack(&stack, NULL);
	sigaction(SIGSEGV, &action, NULL);
	sigaction(SIGUSR1, &action, NULL);
	sigaction(SIGUSR2, &action, NULL);
	if (nested)
		raise(SIGUSR1);
	return interrupted_caller(nowhere);
}
