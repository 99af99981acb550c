/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Allocates the memory that signal handlers use, and keeps it until the process ends. Ordinary
 * code, called while a profile starts or stops.
 */
#include "agent/host/memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "agent/libc/fork_memory.h"
#include "base/cleanup.h"
#include "base/whole_io.h"
#include "frozen/child.h"
#include "os/clock.h"
#include "stream/record.h"

#define N_SLOTS 32
#define PIECE_SIZE (16u << 10)
#define RING_SIZE (1u << 20)
#define OUTBOX_SIZE (sizeof(struct sf_outbox_header) + RING_SIZE)
#define SLOTS_SIZE (N_SLOTS * sizeof(struct sf_slot))
#define N_PLACES (1u << 17)   /* 1 MB, of which what is used is touched */
#define QUEUE_RING (256u << 10)
#define QUEUE_SIZE (sizeof(struct sf_outbox_header) + QUEUE_RING)
#define WAIT_NS 2000000000u
#define LOOK_NS 200000u

_Static_assert(N_SLOTS <= SF_MAX_SLOTS, "the sampler has a bit for each");

SF_CHILD_DATA static void *outbox_memory; /* its place */
SF_CHILD_DATA static bool is_wiped;       /* in forked children it is zeroes: a ring of size 0, which has no room for anybody */

static bool map_slots(struct sf_error *err)
{
	void *memory;

	if (sf_handler.link.slots)
		return true;
	memory = sf_map_own(SLOTS_SIZE, SF_COPIED);
	if (!memory)
		return sf_fail_memory(err);
	sf_handler.link.slots = memory;
	for (uint32_t i = 0; i < N_SLOTS; i++)
		sf_slot_init(&sf_handler.link.slots[i], i);
	sf_handler.link.n_slots = N_SLOTS;
	return true;
}

/* Without memory for it no still is kept. At the end of a profile all are walked, and the items are free. */
static void map_kept(void)
{
	if (!sf_handler.link.kept)
		sf_handler.link.kept = sf_map_own(sizeof(*sf_handler.link.kept), SF_WIPED);
}

bool sf_agent_make_slots(const struct sf_agent_options *options, struct sf_error *err)
{
	if (!map_slots(err))
		return false;
	map_kept();
	for (uint32_t i = 0; options->walk == SF_AGENT_HANDLER && i < sf_handler.link.n_slots; i++) {
		struct sf_slot *slot = &sf_handler.link.slots[i];
		struct sf_workspace *made;

		/* A workspace of another size is not freed: a late handler may still use it. */
		if (slot->workspace && slot->workspace->trace.capacity == options->max_depth)
			continue;
		made = sf_workspace_create(&sf_handler.code.memory, options->max_depth, PIECE_SIZE);
		if (!made)
			return sf_fail_memory(err);
		slot->workspace = made;
	}
	return true;
}

static bool is_free(const struct sf_slot *slot)
{
	return sf_slot_state(atomic_load(&slot->word)) == SF_SLOT_FREE;
}

bool sf_agent_wait_for_slots(void)
{
	uint64_t until_ns = sf_now_ns() + WAIT_NS;

	for (uint32_t i = 0; i < sf_handler.link.n_slots;) {
		if (is_free(&sf_handler.link.slots[i])) {
			i++;
			continue;
		}
		if (sf_now_ns() >= until_ns)
			return false;
		sf_sleep_until(sf_now_ns() + LOOK_NS);
	}
	return true;
}

SF_CHILD_CODE void sf_agent_empty_slots(void)
{
	for (uint32_t i = 0; i < sf_handler.link.n_slots; i++) {
		struct sf_slot *slot = &sf_handler.link.slots[i];
		struct sf_workspace *workspace = slot->workspace;

		if (is_free(slot))
			continue; /* a page that is not written needs no copy */
		sf_slot_init(slot, i);
		slot->workspace = workspace;
	}
}

/* Takes the place of what was there before, in one step. */
SF_CHILD_CODE static bool map_outbox(int flags, int fd, struct sf_error *err)
{
	void *memory = mmap(outbox_memory, OUTBOX_SIZE, PROT_READ | PROT_WRITE,
			    flags | (outbox_memory ? MAP_FIXED : 0), fd, 0);

	if (memory == MAP_FAILED)
		return sf_fail_memory(err);
	outbox_memory = memory;
	is_wiped = false;
	return true;
}

/* Its size is sealed: the other end must not trust a file that might shrink under its eyes. */
static int make_file(struct sf_error *err)
{
	SF_CLEANUP(close) int fd = -1;

	if (!sf_file_may_end_at(OUTBOX_SIZE)) {
		sf_fail_os(err, "cannot make shared memory of %zu KiB under the program's limit for files (ulimit -f)",
			   OUTBOX_SIZE >> 10);
		return -1;
	}
	fd = memfd_create("stillframe-outbox", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (fd < 0 || ftruncate(fd, (off_t)OUTBOX_SIZE) != 0 ||
	    fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0) {
		sf_fail_os(err, "cannot make shared memory");
		return -1;
	}
	return sf_steal_fd(&fd);
}

bool sf_agent_make_outbox(int *fd_ret, struct sf_error *err)
{
	SF_CLEANUP(close) int fd = fd_ret ? make_file(err) : -1;

	if (fd_ret && fd < 0)
		return false;
	if (!map_outbox(fd_ret ? MAP_SHARED : MAP_PRIVATE | MAP_ANONYMOUS, fd, err))
		return false;
	if (!fd_ret)
		is_wiped = sf_set_in_child(outbox_memory, OUTBOX_SIZE, SF_WIPED);
	sf_handler.output.outbox = sf_outbox_init(outbox_memory, RING_SIZE, SF_STREAM_VERSION);
	if (fd_ret)
		*fd_ret = sf_steal_fd(&fd);
	return true;
}

/*
 * A late handler may still put a key of the last profile into the set. That key is never looked up,
 * because the keys of this profile differ.
 */
bool sf_agent_make_places(void)
{
	const size_t keys_size = N_PLACES * sizeof(uint64_t);
	static struct sf_frame_keys places;
	void *memory = places.keys;

	if (!memory) {
		memory = sf_map_own(keys_size + QUEUE_SIZE, SF_WIPED);
		if (!memory)
			return false;
	} else {
		madvise(memory, keys_size + QUEUE_SIZE, MADV_DONTNEED); /* zeroes */
	}
	places.seed = sf_now_ns() ^ (uint64_t)getpid() << 40;
	places.n_keys = N_PLACES;
	places.queue = sf_outbox_init((uint8_t *)memory + keys_size, QUEUE_RING, 0);
	atomic_store(&places.n_not_queued, 0);
	places.keys = memory;
	atomic_store(&sf_handler.code.frame_keys, &places);
	return true;
}

bool sf_agent_make_cache(uint32_t slot, size_t size)
{
	void *memory;

	if (!size || atomic_load(&sf_handler.code.caches[slot]))
		return true;
	memory = sf_map_own(size, SF_WIPED);
	if (!memory)
		return false;
	atomic_store(&sf_handler.code.caches[slot], memory);
	return true;
}

SF_CHILD_CODE void sf_agent_leave_outbox(bool forked)
{
	sf_handler.output.outbox = NULL;
	/* The place stays, empty: a ring of size 0 has no room for anybody. */
	if (outbox_memory && !(forked && is_wiped))
		map_outbox(MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, NULL);
}
