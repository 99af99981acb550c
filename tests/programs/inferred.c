/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One thread asleep for good below functions with frame pointers, of all shapes: who called the
 * last of them must be inferred, and what earlier calls of the same functions left on the stack must not
 * be taken for it.
 *
 * inferred plain|locals|alloca|recursion|arguments|leftovers|pointer|handler|tail
 */
#include <alloca.h>
#include <signal.h>
#include <sys/epoll.h>

#include "program.h"

static int epoll = -1;    /* not open: waiting fails at once */
static volatile unsigned n_calls;

static int wait_here(void)
{
	struct epoll_event event;

	return epoll_wait(epoll, &event, 1, 600000);
}

/* Called from many places and depths, and asleep only in the last call. */
static int plain(void)
{
	n_calls++;
	return epoll_wait(epoll, &(struct epoll_event){ 0 }, 1, 600000) + 1;
}

static int with_locals(int n)
{
	volatile char text[3000];

	text[n] = 1;
	return plain() + text[n];
}

static int with_alloca(int n)
{
	struct epoll_event *events = alloca((size_t)n * sizeof(*events));

	return epoll_wait(epoll, events, n, 600000) + 1;
}

static int calls_alloca(int n)
{
	return with_alloca(n) + 1;
}

static int recursive(int n)
{
	struct epoll_event event;

	if (n == 0)
		return epoll_wait(epoll, &event, 1, 600000);
	return recursive(n - 1) + 1;
}

/* Arguments on the stack: sp is lower at the call than the frame is large. */
static int many(int a, int b, int c, int d, int e, int f, int g, int h, int i)
{
	return a + b + c + d + e + f + g + h + i;
}

static int with_arguments(int n)
{
	return many(n, n, n, n, n, n, n, n, wait_here()) + many(n, n, n, n, n, n, n, wait_here(), n);
}

/* A deep call tree, which leaves return addresses of all these functions below. */
static int litter(int n)
{
	if (n == 0)
		return plain() + with_alloca(3) + recursive(3) + with_arguments(1) + wait_here();
	return litter(n - 1) + with_locals(n) + calls_alloca(n) + 1;
}

static int by_tail(int n)
{
	return with_locals(n);
}

static int leftovers(int n)
{
	volatile char room[2000];

	if (n >= 0)
		return plain() + room[n];
	return 0;
}

/* The kernel called it. */
static void on_signal(int number)
{
	struct epoll_event event;

	n_calls += (unsigned)number;
	epoll_wait(epoll, &event, 1, 600000);
	n_calls++;
}

int main(int argc, char **argv)
{
	const char *shape = argc > 1 ? argv[1] : "plain";
	int (*volatile pointer)(void) = wait_here;

	bounded(600);
	litter(6);
	epoll = epoll_create1(0);
	ready();
	if (strcmp(shape, "plain") == 0)
		return plain();
	if (strcmp(shape, "locals") == 0)
		return with_locals(7);
	if (strcmp(shape, "alloca") == 0)
		return calls_alloca(40);
	if (strcmp(shape, "recursion") == 0)
		return recursive(5);
	if (strcmp(shape, "arguments") == 0)
		return with_arguments(1);
	if (strcmp(shape, "leftovers") == 0)
		return leftovers(1);
	if (strcmp(shape, "pointer") == 0)
		return pointer();
	if (strcmp(shape, "handler") == 0) {
		signal(SIGUSR1, on_signal);
		return raise(SIGUSR1);
	}
	return by_tail(3);
}
