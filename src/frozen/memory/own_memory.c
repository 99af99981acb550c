/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads memory of the own process through the kernel, in pieces. Signal-safe, except for the functions
 * that create and free. Walks read a stack upwards, so a piece starts just below the address of the
 * read. A second read at a slightly lower address finds its bytes in the same piece (the frame
 * pointer lies below the return address). Scattered reads, such as code, go through a cache of lines
 * and never replace the piece.
 */
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/uio.h>

#include "frozen/raw.h"
#include "frozen/memory/own_memory.h"
#include "frozen/memory/hash.h"

#include "frozen/frozen.h"

#define PAGE 4096u       /* the smallest there is: reads that stay inside one never fail half-way */
#define LINE SF_OWN_MEMORY_LINE /* a power of two, at most a page: it can be read whole or not at all */
#define LOG2_LINES 5
#define NO_LINE 1u        /* where none can start */
#define PIECE_BELOW 128u /* bytes of a piece below the address that it was read for */
#define CACHE_LINE 64u
#define MAX_AHEAD 1024u  /* bytes of a piece that are fetched ahead: the processor sees by itself how a long one goes on */
#define CACHED_WALKS 2 /* what was not proved is removed from the cache after the first */

_Static_assert(SF_OWN_MEMORY_LINES == 1u << LOG2_LINES, "a place for each value of the hash");

/* --- asking the kernel --- */

/* By writing into our own memory, see sf_own_memory_gather: what is not in the processor's cache takes up to a third less. */
static long write_here(const struct sf_own_memory *access, const struct iovec *pieces, unsigned n,
		       void *ret, size_t size)
{
	struct iovec here = { ret, size };

	return sf_raw6(SYS_process_vm_writev, access->pid, (long)pieces, n, (long)&here, 1, 0);
}

/* Bytes read, 0 when the first could not be. A filter may have come that refuses to write. */
static size_t ask(const struct sf_own_memory *access, void *ret, uint64_t addr, size_t size)
{
	struct iovec here = { ret, size }, there = { (void *)(uintptr_t)addr, size };
	long n = access->gathers ? write_here(access, &there, 1, ret, size) : 0;

	if (n <= 0 && access->mem_fd >= 0)
		n = sf_raw4(SYS_pread64, access->mem_fd, ret, size, addr);
	else if (n <= 0)
		n = sf_raw6(SYS_process_vm_readv, access->pid, (long)&here, 1, (long)&there, 1, 0);
	return n > 0 ? (size_t)n : 0;
}

/*
 * The kernel gives the pages before the first that cannot be read, though process_vm_readv(2) does
 * not promise it for one piece of memory: so where it gave nothing, the first page is asked for
 * alone.
 */
size_t sf_own_memory_read(const struct sf_own_memory *access, void *ret, uint64_t addr, size_t size)
{
	const size_t to_page_end = PAGE - (addr & (PAGE - 1));
	size_t n;

	if (size == 0)
		return 0;
	n = ask(access, ret, addr, size);
	if (n == 0 && size > to_page_end)
		n = ask(access, ret, addr, to_page_end);
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

void sf_own_memory_close(struct sf_own_memory *access)
{
	if (access->mem_fd >= 0)
		sf_raw1(SYS_close, access->mem_fd);
	access->mem_fd = -1;
}

/* --- lines --- */

void sf_own_memory_lines_forget(struct sf_own_memory_lines *lines)
{
	for (unsigned i = 0; i < SF_OWN_MEMORY_LINES; i++)
		lines->starts[i] = NO_LINE;
}

/* The line that starts there, in the one place where it can be; NULL when it cannot be read. */
static const uint8_t *get_line(struct sf_own_memory_lines *lines, const struct sf_own_memory *access,
			       uint64_t start)
{
	const uint64_t i = sf_hash(start / LINE, LOG2_LINES);

	if (lines->starts[i] == start)
		return lines->bytes[i];
	lines->starts[i] = NO_LINE;
	if (sf_own_memory_read(access, lines->bytes[i], start, LINE) != LINE)
		return NULL;
	lines->starts[i] = start;
	return lines->bytes[i];
}

bool sf_own_memory_lines_read(struct sf_own_memory_lines *lines, const struct sf_own_memory *access, void *ret,
			uint64_t addr, size_t size)
{
	uint8_t *to = ret;

	if (size > LINE)
		return sf_own_memory_read(access, ret, addr, size) == size;
	while (size > 0) {
		const uint64_t offset = addr % LINE;
		const size_t n = size < LINE - offset ? size : LINE - offset;
		const uint8_t *line = get_line(lines, access, addr - offset);

		if (!line)
			return false;
		memcpy(to, line + offset, n);
		to += n;
		addr += n;
		size -= n;
	}
	return true;
}

/* --- workspaces --- */

static size_t round_up(size_t size, size_t to)
{
	return (size + to - 1) & ~(to - 1);
}

struct sf_workspace *sf_workspace_create(const struct sf_own_memory *access, uint32_t max_depth,
					 size_t piece_size)
{
	const size_t frames = round_up(sizeof(struct sf_workspace), 64);
	const size_t packed = frames + max_depth * sizeof(struct sf_frame);
	const size_t scratch = round_up(packed + max_depth * sizeof(struct sf_stream_frame), 64);
	const size_t piece = round_up(scratch + SF_MAX_RUNTIMES * SF_RUNTIME_SCRATCH, PAGE);
	const size_t size = piece + piece_size;
	const long mapped = sf_raw6(SYS_mmap, 0, (long)size, PROT_READ | PROT_WRITE,
				    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct sf_workspace *workspace;
	uint8_t *bytes;

	if (mapped < 0 && mapped > -(long)PAGE)
		return NULL;
	bytes = (uint8_t *)mapped;
	workspace = (struct sf_workspace *)(void *)bytes;
	*workspace = (struct sf_workspace){
		.access = access,
		.trace = { .frames = (struct sf_frame *)(void *)(bytes + frames),
			   .capacity = max_depth },
		.packed = (struct sf_stream_frame *)(void *)(bytes + packed),
		.piece = bytes + piece,
		.piece_capacity = piece_size,
		.mapped_size = size,
	};
	for (size_t i = 0; i < SF_MAX_RUNTIMES; i++)
		workspace->scratch[i] = bytes + scratch + i * SF_RUNTIME_SCRATCH;
	return workspace;
}

void sf_workspace_destroy(struct sf_workspace *workspace)
{
	if (workspace)
		sf_raw2(SYS_munmap, workspace, workspace->mapped_size);
}

/* --- the walk's reader --- */

static bool in_piece(struct sf_workspace *workspace, void *ret, uint64_t addr, size_t size)
{
	const uint64_t offset = addr - workspace->piece_start;

	if (size > workspace->piece_size || offset > workspace->piece_size - size)
		return false;
	memcpy(ret, workspace->piece + offset, size);
	if (addr + size > workspace->top)
		workspace->top = addr + size;
	return true;
}

/*
 * Never down into another page: that one may be the stack's guard. A piece cut short by one is as
 * good.
 */
static uint64_t piece_start(uint64_t addr)
{
	const uint64_t in_page = addr & (PAGE - 1);

	return addr - (in_page < PIECE_BELOW ? in_page : PIECE_BELOW);
}

/*
 * Up to where a walk last wanted something of it: threads begin at the same place as long as they live. For a thread on another
 * stack as much as there is room for.
 */
static size_t wanted_size(struct sf_workspace *workspace, uint64_t start)
{
	const uint64_t size = workspace->top - start;

	if (size < workspace->piece_capacity)
		return size;
	workspace->top = 0;
	return workspace->piece_capacity;
}

static void read_piece(struct sf_workspace *workspace, uint64_t addr, size_t size)
{
	workspace->piece_start = addr;
	workspace->piece_size = sf_own_memory_read(workspace->access, workspace->piece, addr, size);
}

/* Whether these bytes may be loaded. All else is read by the kernel, which refuses where a load would crash. */
static bool loads(const struct sf_code_map *map, uint64_t addr, uint64_t size)
{
	for (size_t i = 0; map && i < map->n_runtimes; i++) {
		const struct sf_runtime *runtime = map->runtimes[i];

		if (runtime->ops->loads && runtime->ops->loads(runtime, addr, size))
			return true;
	}
	return false;
}

/* Frames of a runtime are read from the stack pointer on, also where the first read is further up. */
static void read_first(struct sf_workspace *workspace, const struct sf_still *still)
{
	uint64_t stack;

	workspace->piece_size = 0;
	if (!sf_code_map_near_runtime(still->map, still->regs.pc))
		return;
	stack = piece_start(still->regs.r[still->arch->sp]);
	read_piece(workspace, stack, wanted_size(workspace, stack));
}

static bool load(const struct sf_workspace *workspace, void *ret, uint64_t addr, size_t size)
{
	if (!loads(workspace->map, addr, size))
		return false;
	memcpy(ret, (const void *)(uintptr_t)addr, size);
	return true;
}

static bool read_memory(const struct sf_reader *reader, void *ret, uint64_t addr, size_t size)
{
	struct sf_workspace *workspace = reader->arg;

	if (in_piece(workspace, ret, addr, size))
		return true;
	if (reader->scattered || sf_code_map_find(workspace->map, addr))
		return load(workspace, ret, addr, size) ||
		       sf_own_memory_lines_read(&workspace->lines, workspace->access, ret, addr, size);
	if (size + PIECE_BELOW > workspace->piece_capacity)
		return sf_own_memory_read(workspace->access, ret, addr, size) == size;
	if (workspace->piece_size || addr + size > workspace->top)
		read_piece(workspace, piece_start(addr), workspace->piece_capacity);
	else
		read_piece(workspace, piece_start(addr), wanted_size(workspace, piece_start(addr)));
	return in_piece(workspace, ret, addr, size);
}

static enum sf_end walk(struct sf_workspace *workspace, struct sf_still *still)
{
	workspace->map = still->map;
	read_first(workspace, still);
	sf_own_memory_lines_forget(&workspace->lines);
	/* No window: nothing is claimed to be at hand, so nothing is ever "beyond the copy". */
	still->memory = (struct sf_reader){ .read = read_memory, .arg = workspace };
	memcpy(still->scratch, workspace->scratch, sizeof(still->scratch));
	return sf_walk(still, &workspace->trace);
}

_Static_assert(SF_RUNTIME_PROOF <= SF_OWN_MEMORY_LINES * LINE, "room for all that a walk can take from a cache");

static void begin(const struct sf_workspace *workspace, const struct sf_still *still, bool uses_caches)
{
	for (size_t i = 0; still->map && i < still->map->n_runtimes; i++) {
		const struct sf_runtime *runtime = still->map->runtimes[i];

		if (runtime->ops->begin)
			runtime->ops->begin(workspace->scratch[runtime->slot],
					    workspace->caches[runtime->slot], uses_caches);
	}
}

/* Whether all that the walk took from one cache is still so. When the walk is over, the lines' memory is free. */
static bool is_proved(struct sf_workspace *workspace, const struct sf_runtime *runtime)
{
	void *scratch = workspace->scratch[runtime->slot];
	uint8_t *bytes = workspace->lines.bytes[0];
	const struct iovec *pieces;
	unsigned n = 0;
	size_t size;

	if (runtime->ops->proof)
		n = runtime->ops->proof(runtime, scratch, &pieces, &size);
	if (!n)
		return true;
	if (sf_own_memory_gather(workspace->access, bytes, size, pieces, n) != size)
		bytes = NULL;
	return runtime->ops->is_proved(runtime, scratch, bytes);
}

static bool are_proved(struct sf_workspace *workspace, const struct sf_still *still)
{
	bool all = true;

	for (size_t i = 0; still->map && i < still->map->n_runtimes; i++)
		all &= is_proved(workspace, still->map->runtimes[i]);
	return all;
}

enum sf_end sf_workspace_walk(struct sf_workspace *workspace, struct sf_still *still)
{
	enum sf_end end;

	for (unsigned i = 0; i < CACHED_WALKS; i++) {
		begin(workspace, still, true);
		end = walk(workspace, still);
		if (are_proved(workspace, still))
			return end;
	}
	begin(workspace, still, false);
	return walk(workspace, still);
}
