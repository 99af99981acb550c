/* SPDX-License-Identifier: Apache-2.0 */
/* Reads memory of the own process through the kernel. Signal-safe, except for the probe. */
#include <errno.h>
#include <fcntl.h>
#include <sys/uio.h>

#include "frozen/memory/own_memory.h"
#include "frozen/child.h"
#include "frozen/raw.h"

#include "frozen/frozen.h"

#define PAGE 4096u       /* the smallest there is: reads that stay inside one never fail half-way */
#define CACHE_LINE 64u
#define MAX_AHEAD 1024u  /* bytes of a piece that are fetched ahead: the processor prefetches the rest of a long one */

/* A first thread that has ended has no memory, and the process id is its number: the calling thread's own does as well then. */
static long transfer(const struct sf_own_memory *access, long number, const struct iovec *local,
		     const struct iovec *remote, unsigned long n_local, unsigned long n_remote)
{
	long done = sf_raw6(number, access->pid, (long)local, (long)n_local, (long)remote, (long)n_remote, 0);

	if (done != -ESRCH)
		return done;
	return sf_raw6(number, sf_raw0(SYS_gettid), (long)local, (long)n_local, (long)remote, (long)n_remote, 0);
}

/* By writing into our own memory, see sf_own_memory_gather: what is not in the processor's cache takes up to a third less. */
static long write_here(const struct sf_own_memory *access, const struct iovec *pieces, unsigned n,
		       void *ret, size_t size)
{
	struct iovec here = { ret, size };

	return transfer(access, SYS_process_vm_writev, pieces, &here, n, 1);
}

/* The number of bytes read, 0 when the first could not be. A syscall filter that was installed later may refuse the write. */
static size_t read_some(const struct sf_own_memory *access, void *ret, uint64_t addr, size_t size)
{
	struct iovec here = { ret, size }, there = { (void *)(uintptr_t)addr, size };
	long n = access->gathers ? write_here(access, &there, 1, ret, size) : 0;

	if (n <= 0 && access->mem_fd >= 0)
		n = sf_raw4(SYS_pread64, access->mem_fd, ret, size, addr);
	else if (n <= 0)
		n = transfer(access, SYS_process_vm_readv, &here, &there, 1, 1);
	return n > 0 ? (size_t)n : 0;
}

/*
 * The kernel copies the pages before the first that cannot be read, though process_vm_readv(2) does
 * not promise it for one piece of memory. Where it copied nothing, the first page is read alone.
 */
size_t sf_own_memory_read(const struct sf_own_memory *access, void *ret, uint64_t addr, size_t size)
{
	const size_t to_page_end = PAGE - (addr & (PAGE - 1));
	size_t n;

	if (size == 0)
		return 0;
	n = read_some(access, ret, addr, size);
	if (n == 0 && size > to_page_end)
		n = read_some(access, ret, addr, to_page_end);
	return n;
}

/*
 * Many pieces that lie here and there are fetched side by side, where the kernel would wait for each in turn. A
 * hint: no address makes it fail.
 */
static void fetch_ahead(const struct iovec *pieces, unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		const uintptr_t piece = (uintptr_t)pieces[i].iov_base;

		for (size_t at = 0; at < pieces[i].iov_len && at < MAX_AHEAD; at += CACHE_LINE)
			__builtin_prefetch((const void *)(piece + at));
	}
}

/*
 * By writing into our own memory: the kernel pins the pages that it writes to, once for each piece, and copies
 * from the other side as any system call does (mm/process_vm_access.c). To read so would pin each piece's page.
 */
size_t sf_own_memory_gather(const struct sf_own_memory *access, void *ret, size_t size,
		      const struct iovec *pieces, unsigned n)
{
	uint8_t *to = ret;
	size_t read;
	long done;

	if (access->gathers) {
		fetch_ahead(pieces, n);
		done = write_here(access, pieces, n, ret, size);
		return done > 0 ? (size_t)done : 0;
	}
	for (unsigned i = 0; i < n; i++) {
		read = sf_own_memory_read(access, to, (uint64_t)(uintptr_t)pieces[i].iov_base,
				    pieces[i].iov_len);
		to += read;
		if (read != pieces[i].iov_len)
			break;
	}
	return (size_t)(to - (uint8_t *)ret);
}

static bool works(struct sf_own_memory access, bool gathers)
{
	uint64_t wanted = UINT64_C(0x5f3759df5f3759df), seen = 0;
	const struct iovec piece = { &wanted, sizeof(wanted) };

	access.gathers = gathers;
	return sf_own_memory_gather(&access, &seen, sizeof(seen), &piece, 1) == sizeof(seen) &&
	       seen == wanted;
}

bool sf_own_memory_probe(struct sf_own_memory *ret)
{
	struct sf_own_memory access = { .pid = (int32_t)sf_raw0(SYS_getpid), .mem_fd = -1 };

	if (!works(access, false)) {
		access.mem_fd = (int32_t)sf_raw4(SYS_openat, AT_FDCWD, "/proc/self/mem",
						 O_RDONLY | O_CLOEXEC, 0);
		if (access.mem_fd < 0)
			return false;
		if (!works(access, false)) {
			sf_own_memory_close(&access);
			return false;
		}
	}
	access.gathers = works(access, true);
	*ret = access;
	return true;
}

SF_CHILD_CODE void sf_own_memory_close(struct sf_own_memory *access)
{
	if (access->mem_fd >= 0)
		sf_raw1(SYS_close, access->mem_fd);
	access->mem_fd = -1;
}

static size_t read_line(void *arg, void *ret, uint64_t addr, size_t size)
{
	return sf_own_memory_read(arg, ret, addr, size);
}

void sf_own_memory_lines_init(struct sf_own_memory_lines *lines, const struct sf_own_memory *access)
{
	lines->cache.read = read_line;
	lines->cache.arg = (void *)(uintptr_t)access;
	sf_line_cache_init(&lines->cache, lines->memory, SF_OWN_MEMORY_LINE, SF_OWN_MEMORY_LOG2_LINES);
}
