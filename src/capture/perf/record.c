/* SPDX-License-Identifier: Apache-2.0 */
/* Takes records of perf events apart. */
#include "capture/perf/record.h"

#include <string.h>

#include "os/perf_events.h"

/* The rest of a record. */
struct rest {
	const uint8_t *at;
	size_t size;
};

/* The identity at the start of a sample, and at the end of every other record: TID, TIME, CPU. */
struct identity {
	int32_t  pid, tid;
	uint64_t time_ns;
	uint32_t cpu, reserved;
};

#define CONTEXT_MARKS ((uint64_t)-4095) /* PERF_CONTEXT_MAX: from here on a chain's entry is no address */

/* `size` bytes, or NULL where there are not so many. */
static const void *take(struct rest *rest, uint64_t size)
{
	const uint8_t *at = rest->at;

	if (size > rest->size)
		return NULL;
	rest->at += size;
	rest->size -= (size_t)size;
	return at;
}

static bool take_u64(struct rest *rest, uint64_t *ret)
{
	const void *bytes = take(rest, sizeof(*ret));

	if (bytes)
		memcpy(ret, bytes, sizeof(*ret));
	return bytes;
}

static struct rest body_of(const struct perf_event_header *header)
{
	return (struct rest){ (const uint8_t *)(header + 1), header->size - sizeof(*header) };
}

static bool take_identity(const void *bytes, struct sf_perf_record *ret)
{
	struct identity identity;

	if (!bytes)
		return false;
	memcpy(&identity, bytes, sizeof(identity));
	ret->pid = identity.pid;
	ret->tid = identity.tid;
	ret->time_ns = identity.time_ns;
	ret->cpu = identity.cpu;
	return true;
}

/* The addresses from `at` on, up to the next mark, are of this context. */
static size_t take_addresses(const uint64_t *chain, size_t at, size_t n, uint64_t mark, struct sf_perf_record *ret)
{
	size_t end = at;

	while (end < n && chain[end] < CONTEXT_MARKS)
		end++;
	if (mark == PERF_CONTEXT_KERNEL && end > at) {
		ret->kernel = chain + at;
		ret->n_kernel = end - at;
	} else if (mark == PERF_CONTEXT_USER && end > at) {
		ret->chain = chain + at;
		ret->n_chain = end - at;
	}
	return end;
}

/* A mark says of which context the addresses behind it are. */
static bool take_chain(struct rest *rest, struct sf_perf_record *ret)
{
	uint64_t n;
	const uint64_t *chain;

	if (!take_u64(rest, &n) || n > rest->size / sizeof(*chain))
		return false;
	chain = take(rest, n * sizeof(*chain));
	for (size_t at = 0; at < n;)
		at = take_addresses(chain, at + 1, n, chain[at], ret);
	return true;
}

static bool take_registers(struct rest *rest, struct sf_perf_record *ret)
{
	uint64_t abi;

	if (!take_u64(rest, &abi))
		return false;
	if (abi == PERF_SAMPLE_REGS_ABI_NONE)
		return true;
	ret->regs = take(rest, sf_perf_n_regs * sizeof(*ret->regs));
	if (!ret->regs)
		return false;
	ret->is_32_bit = abi == PERF_SAMPLE_REGS_ABI_32;
	if (abi != PERF_SAMPLE_REGS_ABI_64)
		ret->regs = NULL;
	return true;
}

/* The size of the room, the room, and how much of it was filled; only the first where that is 0. */
static bool take_stack(struct rest *rest, struct sf_perf_record *ret)
{
	uint64_t room, filled;

	if (!take_u64(rest, &room))
		return false;
	if (!room)
		return true;
	ret->stack = take(rest, room);
	if (!ret->stack || !take_u64(rest, &filled) || filled > room)
		return false;
	ret->stack_room = (uint32_t)room;
	ret->stack_size = (uint32_t)filled;
	return true;
}

static bool parse_sample(struct rest rest, struct sf_perf_record *ret)
{
	return take_identity(take(&rest, sizeof(struct identity)), ret) && take_chain(&rest, ret) &&
	       take_registers(&rest, ret) && take_stack(&rest, ret);
}

/* Takes the identity off the end. */
static bool take_trailer(struct rest *rest, struct sf_perf_record *ret)
{
	if (rest->size < sizeof(struct identity))
		return false;
	rest->size -= sizeof(struct identity);
	return take_identity(rest->at + rest->size, ret);
}

/* The rest of a record is text that ends with a zero, and padding. */
static const char *take_text(struct rest *rest)
{
	return rest->size && memchr(rest->at, 0, rest->size) ? (const char *)rest->at : NULL;
}

static bool take_ids(struct rest *rest, int32_t *first, int32_t *second)
{
	const uint8_t *bytes = take(rest, 2 * sizeof(int32_t));

	if (!bytes)
		return false;
	memcpy(first, bytes, sizeof(*first));
	memcpy(second, bytes + sizeof(*first), sizeof(*second));
	return true;
}

static bool parse_comm(struct rest rest, uint16_t misc, struct sf_perf_record *ret)
{
	ret->is_exec = (misc & PERF_RECORD_MISC_COMM_EXEC) != 0;
	return take_trailer(&rest, ret) && take_ids(&rest, &ret->pid, &ret->tid) && (ret->name = take_text(&rest));
}

/* { pid, ppid, tid, ptid, time }: the ids of the new or ended thread replace those of the trailer. */
static bool parse_task(struct rest rest, struct sf_perf_record *ret)
{
	return take_trailer(&rest, ret) && take_ids(&rest, &ret->pid, &ret->parent_pid) &&
	       take_ids(&rest, &ret->tid, &ret->parent_tid);
}

/* { id, lost } */
static bool parse_lost(struct rest rest, struct sf_perf_record *ret)
{
	uint64_t id;

	return take_trailer(&rest, ret) && take_u64(&rest, &id) && take_u64(&rest, &ret->n_lost);
}

/* { pid, tid, value }: the trailer's ids are those of the thread that reads. */
static bool parse_read(struct rest rest, struct sf_perf_record *ret)
{
	return take_trailer(&rest, ret) && take_ids(&rest, &ret->pid, &ret->tid) && take_u64(&rest, &ret->cpu_ns);
}

/* { pid, tid, address, length, offset, device, inode, generation, protection and flags, path } */
static bool parse_mapping(struct rest rest, uint16_t misc, struct sf_perf_record *ret)
{
	struct sf_perf_mapping *mapping = &ret->mapping;
	uint64_t generation;
	int32_t flags, protection, major, minor;

	if ((misc & PERF_RECORD_MISC_MMAP_BUILD_ID) || !take_trailer(&rest, ret) ||
	    !take_ids(&rest, &ret->pid, &ret->tid) || !take_u64(&rest, &mapping->start) ||
	    !take_u64(&rest, &mapping->size) || !take_u64(&rest, &mapping->offset) ||
	    !take_ids(&rest, &major, &minor) || !take_u64(&rest, &mapping->inode) ||
	    !take_u64(&rest, &generation) || !take_ids(&rest, &protection, &flags))
		return false;
	mapping->major = (uint32_t)major;
	mapping->minor = (uint32_t)minor;
	mapping->protection = (uint32_t)protection;
	mapping->path = take_text(&rest);
	return mapping->path;
}

/* { next or previous pid, tid } before the trailer in the record of a CPU's event. */
static bool parse_switch(struct rest rest, uint16_t misc, struct sf_perf_record *ret)
{
	ret->leaves = (misc & PERF_RECORD_MISC_SWITCH_OUT) != 0;
	ret->is_preempted = ret->leaves && (misc & PERF_RECORD_MISC_SWITCH_OUT_PREEMPT);
	return take_trailer(&rest, ret);
}

bool sf_perf_record_parse_raw(const struct perf_event_header *header, struct sf_perf_record *ret)
{
	struct rest rest = body_of(header);
	const void *size;

	*ret = (struct sf_perf_record){ .type = header->type };
	if (header->type != PERF_RECORD_SAMPLE)
		return sf_perf_record_parse(header, ret);
	if (!take_identity(take(&rest, sizeof(struct identity)), ret) || !(size = take(&rest, sizeof(ret->raw_size))))
		return false;
	memcpy(&ret->raw_size, size, sizeof(ret->raw_size));
	ret->raw = take(&rest, ret->raw_size);
	return ret->raw;
}

bool sf_perf_record_parse(const struct perf_event_header *header, struct sf_perf_record *ret)
{
	const struct rest body = body_of(header);

	*ret = (struct sf_perf_record){ .type = header->type };
	switch (header->type) {
	case PERF_RECORD_SAMPLE:
		return parse_sample(body, ret);
	case PERF_RECORD_COMM:
		return parse_comm(body, header->misc, ret);
	case PERF_RECORD_FORK:
	case PERF_RECORD_EXIT:
		return parse_task(body, ret);
	case PERF_RECORD_LOST:
		return parse_lost(body, ret);
	case PERF_RECORD_READ:
		return parse_read(body, ret);
	case PERF_RECORD_MMAP2:
		return parse_mapping(body, header->misc, ret);
	case PERF_RECORD_SWITCH:
	case PERF_RECORD_SWITCH_CPU_WIDE:
		return parse_switch(body, header->misc, ret);
	case PERF_RECORD_THROTTLE:
	case PERF_RECORD_UNTHROTTLE: {
		struct rest rest = body;

		return take_trailer(&rest, ret);
	}
	default:
		return false;
	}
}

uint64_t sf_perf_record_time(const struct perf_event_header *header)
{
	struct sf_perf_record record = { 0 };
	struct rest rest = body_of(header);

	if (header->type == PERF_RECORD_SAMPLE)
		return take_identity(take(&rest, sizeof(struct identity)), &record) ? record.time_ns : 0;
	return take_trailer(&rest, &record) ? record.time_ns : 0;
}
