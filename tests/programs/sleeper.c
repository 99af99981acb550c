/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One thread asleep for good in a system call, in functions that are compiled without optimisation, so that
 * walking their frames needs the frame pointer, which only the thread knows.
 *
 * sleeper poll|epoll
 */
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

int main(int argc, char **argv)
{
	bounded(600);
	return by_way_of(argc > 1 && strcmp(argv[1], "epoll") == 0);
}
