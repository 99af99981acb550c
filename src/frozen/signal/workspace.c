/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Walks inside the process: the workspace of a walk, and its reader. Signal-safe, except for the functions
 * that create and free. Walks read a stack upwards, so a piece starts just below the address of the
 * read. A second read at a slightly lower address finds its bytes in the same piece (the frame
 * pointer lies below the return address). Scattered reads, such as code, go through a cache of lines
 * and never replace the piece.
 */
#include <string.h>
#include <sys/mman.h>
#include <sys/uio.h>

#include "frozen/raw.h"
#include "frozen/signal/workspace.h"

#include "frozen/frozen.h"

#define PAGE 4096u       /* the smallest there is */
#define PIECE_BELOW 128u /* bytes of a piece below the address that it was read for */
#define CACHED_WALKS 2   /* entries that were not proved are removed from the cache after the first */

_Static_assert(SF_RUNTIME_PROOF <= sizeof(((struct sf_own_memory_lines *)0)->memory),
	       "room for all that a walk can take from a cache");

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
	/* The rest is zeroes already. A part that is not written has no pages, which each fork() would copy. */
	workspace->access = access;
	workspace->trace.frames = (struct sf_frame *)(void *)(bytes + frames);
	workspace->trace.capacity = max_depth;
	workspace->packed = (struct sf_stream_frame *)(void *)(bytes + packed);
	workspace->piece = bytes + piece;
	workspace->piece_capacity = piece_size;
	workspace->mapped_size = size;
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

uint64_t sf_workspace_piece_start(uint64_t addr)
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
/* Frames of a runtime are read from the stack pointer on, also where the first read is further up. */
static void read_first(struct sf_workspace *workspace, const struct sf_still *still)
{
	uint64_t stack;

	if (!sf_code_map_near_runtime(still->map, still->regs.pc))
		return;
	stack = sf_workspace_piece_start(still->regs.r[still->arch->sp]);
	read_piece(workspace, stack, wanted_size(workspace, stack));
}

static bool load(const struct sf_workspace *workspace, void *ret, uint64_t addr, size_t size)
{
	if (!workspace->map || !sf_runtimes_load(workspace->map->runtimes, workspace->map->n_runtimes, addr, size))
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
		       sf_line_cache_read(&workspace->lines.cache, ret, addr, size);
	if (size + PIECE_BELOW > workspace->piece_capacity)
		return sf_own_memory_read(workspace->access, ret, addr, size) == size;
	if (workspace->piece_size || addr + size > workspace->top)
		read_piece(workspace, sf_workspace_piece_start(addr), workspace->piece_capacity);
	else
		read_piece(workspace, sf_workspace_piece_start(addr), wanted_size(workspace, sf_workspace_piece_start(addr)));
	return in_piece(workspace, ret, addr, size);
}

/* Of a held thread without a window: nothing is claimed to be at hand, so nothing is ever "beyond the copy". */
static struct sf_reader reader_of(struct sf_workspace *workspace)
{
	const struct sf_window *copy = workspace->copy;
	struct sf_reader reader = { .read = read_memory, .arg = workspace };

	if (!copy)
		return reader;
	reader.window = copy->bytes;
	reader.window_start = copy->start;
	reader.window_size = copy->size;
	reader.stack_end = copy->stack_end;
	reader.copied = true;
	return reader;
}

static enum sf_end walk(struct sf_workspace *workspace, struct sf_still *still)
{
	workspace->map = still->map;
	workspace->piece_size = 0;
	if (!workspace->copy)
		read_first(workspace, still);
	sf_own_memory_lines_init(&workspace->lines, workspace->access);
	still->memory = reader_of(workspace);
	memcpy(still->scratch, workspace->scratch, sizeof(still->scratch));
	return sf_walk(still, &workspace->trace);
}

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
	uint8_t *bytes = workspace->lines.cache.bytes;
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
