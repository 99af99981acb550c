/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two chains of calls take turns, a1 -> a2 -> a3 and b1 -> b2 -> b3. A signal interrupts them a thousand times a second, and
 * its handler works on an alternate stack for half of the time. So the interrupted stack is another one soon after each sample,
 * and a stack with functions of both chains was never there.
 *
 * two_chains SECONDS
 */
#include "program.h"

#include <sys/mman.h>

#define STACK_SIZE ((size_t)64 << 10)

static volatile unsigned long turns;

static void work(unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		turns++;
}

static NOINLINE void handler_work(void)
{
	const int64_t end_ns = now_ns() + 500000;

	while (now_ns() < end_ns)
		work(100);
	NO_TAIL_CALL();
}

static void on_signal(int signal)
{
	(void)signal;
	handler_work();
	NO_TAIL_CALL();
}

/* Of different length: identical functions would become one. */
#define CHAIN(name, n)                                                                              \
	static NOINLINE void name##3(void)                                                         \
	{                                                                                          \
		work(n);                                                                           \
		NO_TAIL_CALL();                                                                    \
	}                                                                                          \
	static NOINLINE void name##2(void)                                                         \
	{                                                                                          \
		name##3();                                                                         \
		NO_TAIL_CALL();                                                                    \
	}                                                                                          \
	static NOINLINE void name##1(void)                                                         \
	{                                                                                          \
		name##2();                                                                         \
		NO_TAIL_CALL();                                                                    \
	}
CHAIN(a, 5000)
CHAIN(b, 5001)

int main(int argc, char **argv)
{
	void *memory = mmap(NULL, STACK_SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	const stack_t stack = { .ss_sp = memory, .ss_size = STACK_SIZE };
	const struct sigaction action = { .sa_handler = on_signal, .sa_flags = SA_ONSTACK | SA_RESTART };
	struct sigevent event = { .sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR1 };
	const struct itimerspec every = { { 0, 1000000 }, { 0, 1000000 } };
	const int64_t start_ns = now_ns();
	timer_t timer;

	bounded(120);
	if (memory == MAP_FAILED || sigaltstack(&stack, NULL) != 0 || sigaction(SIGUSR1, &action, NULL) != 0 ||
	    timer_create(CLOCK_MONOTONIC, &event, &timer) != 0 || timer_settime(timer, 0, &every, NULL) != 0)
		return 1;
	ready();
	while (lasts(start_ns, argument(argc, argv, 1, 600))) {
		a1();
		b1();
	}
	return 0;
}
