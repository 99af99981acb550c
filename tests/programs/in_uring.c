/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lets a worker of io_uring, which the kernel makes as a thread of the process, read zeroes: once, and the worker waits for more to do;
 * with `busy`, all the time. A read that ends early is the exit status 1: something has interrupted the worker.
 *
 * in_uring SECONDS [busy]
 */
#include <fcntl.h>
#include <linux/io_uring.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "program.h"

#define SIZE (64 << 20)

static char *zeroes;

static struct io_uring_params params;
static char *ring;
static struct io_uring_sqe *entries;
static int ring_fd;

static unsigned *at(unsigned offset)
{
	return (unsigned *)(ring + offset);
}

static bool make_ring(void)
{
	size_t size;

	ring_fd = (int)syscall(SYS_io_uring_setup, 8, &params);
	size = params.sq_off.array + params.sq_entries * sizeof(unsigned);
	if (size < params.cq_off.cqes + params.cq_entries * sizeof(struct io_uring_cqe))
		size = params.cq_off.cqes + params.cq_entries * sizeof(struct io_uring_cqe);
	ring = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, ring_fd, IORING_OFF_SQ_RING);
	entries = mmap(NULL, params.sq_entries * sizeof(*entries), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, ring_fd, IORING_OFF_SQES);
	return ring_fd >= 0 && ring != MAP_FAILED && entries != MAP_FAILED;
}

/* By a worker, and not by this thread. What the read gives: a number of bytes, or an error below 0. */
static int read_by_worker(int fd)
{
	const unsigned tail = *at(params.sq_off.tail), place = tail & *at(params.sq_off.ring_mask), head = *at(params.cq_off.head);

	entries[place] = (struct io_uring_sqe){ .opcode = IORING_OP_READ, .flags = IOSQE_ASYNC, .fd = fd, .addr = (uint64_t)zeroes, .len = SIZE };
	at(params.sq_off.array)[place] = place;
	__atomic_store_n(at(params.sq_off.tail), tail + 1, __ATOMIC_RELEASE);
	for (unsigned n = 1; __atomic_load_n(at(params.cq_off.tail), __ATOMIC_ACQUIRE) == head; n = 0) {
		if (syscall(SYS_io_uring_enter, ring_fd, n, 1, IORING_ENTER_GETEVENTS, NULL, 0) < 0 && errno != EINTR)
			return -errno;
	}
	__atomic_store_n(at(params.cq_off.head), head + 1, __ATOMIC_RELEASE);
	return ((struct io_uring_cqe *)(ring + params.cq_off.cqes))[head & *at(params.cq_off.ring_mask)].res;
}

int main(int argc, char **argv)
{
	const unsigned seconds = argument(argc, argv, 1, 20);
	const int zero = open("/dev/zero", O_RDONLY);
	const int64_t end_ns = clock_ns(CLOCK_MONOTONIC) + seconds * NS_PER_S;

	bounded(seconds + 20);
	zeroes = malloc(SIZE);
	if (zero < 0 || !zeroes || !make_ring())
		return 2;
	if (read_by_worker(zero) != SIZE)
		return 1;
	ready();
	while (clock_ns(CLOCK_MONOTONIC) < end_ns) {
		if (argc < 3)
			sleep_ns(10000000);
		else if (read_by_worker(zero) != SIZE)
			return 1;
	}
	return 0;
}
