/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One thread asleep for good in a system call, in functions that are compiled without optimisation, so that
 * walking their frames needs the frame pointer, which only the thread knows. The caller of the last of them can be
 * inferred from the call, except when it was called by a pointer and its frame has no fixed size.
 *
 * sleeper poll|epoll [pointer]
 */
#include <alloca.h>
#include <poll.h>
#include <sys/epoll.h>

#include "program.h"

static int fall_asleep(bool in_epoll)
{
	struct epoll_event event;
	int epoll = epoll_create1(0);

	ready();
	if (in_epoll)
		return epoll_wait(epoll, &event, 1, 600000);
	return poll(NULL, 0, 600000);
}

static int by_way_of(bool in_epoll)
{
	return fall_asleep(in_epoll) + 1;
}

static int with_alloca(bool in_epoll, size_t size)
{
	void *events = alloca(size);
	int epoll = epoll_create1(0);

	ready();
	if (in_epoll)
		return epoll_wait(epoll, events, 1, 600000);
	return poll(events, 0, 600000);
}

static int by_pointer(bool in_epoll)
{
	int (*volatile call)(bool, size_t) = with_alloca;

	return call(in_epoll, 100) + 1;
}

int main(int argc, char **argv)
{
	const bool in_epoll = argc > 1 && strcmp(argv[1], "epoll") == 0;

	bounded(600);
	return argc > 2 ? by_pointer(in_epoll) : by_way_of(in_epoll);
}
