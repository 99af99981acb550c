/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A thread whose stack runs into pages that nobody ever fills: of a region that is registered with userfaultfd(2), where
 * reading from outside waits for ever. `spin`: it runs just below them. `fault`: it has met one, and waits itself.
 * The first thread works on.
 *
 * stalled_stack [spin|fault]. Exit status 77: userfaultfd is not to be had.
 */
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <pthread.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "program.h"

#define ROOM ((size_t)1 << 20)
#define BELOW 256

static uint8_t *room; /* ROOM bytes of its own, and as many that are missing */

static void cannot(const char *what)
{
	perror(what);
	exit(77);
}

static int open_userfaultfd(void)
{
	int fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC), device;

	if (fd >= 0)
		return fd;
	device = open("/dev/userfaultfd", O_RDWR | O_CLOEXEC);
	fd = device < 0 ? -1 : ioctl(device, USERFAULTFD_IOC_NEW, O_CLOEXEC);
	if (fd < 0)
		cannot("userfaultfd");
	return fd;
}

static void make_room(void)
{
	struct uffdio_api api = { .api = UFFD_API };
	struct uffdio_register missing = { .mode = UFFDIO_REGISTER_MODE_MISSING };
	int fd = open_userfaultfd();

	room = mmap(NULL, 2 * ROOM, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (room == MAP_FAILED)
		cannot("mmap");
	memset(room, 0, ROOM);
	missing.range.start = (uintptr_t)room + ROOM;
	missing.range.len = ROOM;
	if (ioctl(fd, UFFDIO_API, &api) != 0 || ioctl(fd, UFFDIO_REGISTER, &missing) != 0)
		cannot("userfaultfd");
}

/* On a stack of which this many bytes are there, for ever. */
static void *run_below(void *arg)
{
	uint8_t *sp = room + ROOM - BELOW;

	(void)arg;
	__asm__ volatile("mov %0, %%rsp\n"
			 "1: pause\n"
			 "jmp 1b\n"
			 : : "r"(sp) : "memory");
	return NULL;
}

static void *meet_one(void *arg)
{
	uint8_t *sp = room + ROOM + ROOM / 2;

	(void)arg;
	__asm__ volatile("mov %0, %%rsp\n"
			 "push %%rax\n"
			 "1: pause\n"
			 "jmp 1b\n"
			 : : "r"(sp) : "memory");
	return NULL;
}

static NOINLINE void work_on(void)
{
	for (;;)
		KEEP(now_ns());
}

int main(int argc, char **argv)
{
	pthread_t thread;

	bounded(120);
	make_room();
	pthread_create(&thread, NULL, argument_is(argc, argv, 1, "fault") ? meet_one : run_below, NULL);
	ready();
	work_on();
}
