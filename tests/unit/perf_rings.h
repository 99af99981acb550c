/* SPDX-License-Identifier: Apache-2.0 */
/* Hand-made rings of perf records: what the kernel would write, and what it would never write. */
#ifndef SF_TESTS_PERF_RINGS_H
#define SF_TESTS_PERF_RINGS_H

#include <linux/perf_event.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "os/perf_events.h"

#define RING_PAGE 4096u

/* A record under construction. */
struct made_record {
	_Alignas(8) uint8_t bytes[70000];
	size_t size;
};

static inline void made_put(struct made_record *made, const void *bytes, size_t size)
{
	if (size)
		memcpy(made->bytes + made->size, bytes, size);
	made->size += size;
}

static inline void made_u64(struct made_record *made, uint64_t value)
{
	made_put(made, &value, sizeof(value));
}

static inline void made_ids(struct made_record *made, int32_t first, int32_t second)
{
	made_put(made, &first, sizeof(first));
	made_put(made, &second, sizeof(second));
}

static inline void made_begin(struct made_record *made, uint32_t type, uint16_t misc)
{
	const struct perf_event_header header = { .type = type, .misc = misc };

	made->size = 0;
	made_put(made, &header, sizeof(header));
}

static inline void made_identity(struct made_record *made, int32_t pid, int32_t tid, uint64_t time_ns, uint32_t cpu)
{
	made_ids(made, pid, tid);
	made_u64(made, time_ns);
	made_u64(made, cpu);
}

static inline void made_end(struct made_record *made)
{
	((struct perf_event_header *)(void *)made->bytes)->size = (uint16_t)made->size;
}

/* Text with its zero, padded to 8 bytes. */
static inline void made_text(struct made_record *made, const char *text)
{
	const size_t size = (strlen(text) + 8) & ~(size_t)7;

	memset(made->bytes + made->size, 0, size);
	memcpy(made->bytes + made->size, text, strlen(text));
	made->size += size;
}

/* Register i is 0x1000 + i; sp and pc are wherever the host's order has them. */
static inline void made_sample(struct made_record *made, int32_t pid, int32_t tid, uint64_t time_ns, const uint64_t *chain,
			       size_t n_chain, uint64_t abi, uint64_t room, uint64_t filled)
{
	made_begin(made, PERF_RECORD_SAMPLE, 0);
	made_identity(made, pid, tid, time_ns, 1);
	made_u64(made, n_chain);
	made_put(made, chain, n_chain * sizeof(*chain));
	made_u64(made, abi);
	for (unsigned i = 0; abi && i < sf_perf_n_regs; i++)
		made_u64(made, 0x1000 + i);
	made_u64(made, room);
	for (uint64_t i = 0; i < room; i++)
		made->bytes[made->size++] = (uint8_t)i;
	if (room)
		made_u64(made, filled);
	made_end(made);
}

/* A mapping: a page of state and `size` bytes. The caller frees it. */
static inline struct perf_event_mmap_page *made_ring(size_t size)
{
	return calloc(1, RING_PAGE + size);
}

/* Appends a record as the kernel does, around the end. */
static inline void ring_append(struct perf_event_mmap_page *page, size_t size, const void *bytes, size_t n)
{
	uint8_t *data = (uint8_t *)page + RING_PAGE;

	for (size_t i = 0; i < n; i++)
		data[(page->data_head + i) & (size - 1)] = ((const uint8_t *)bytes)[i];
	page->data_head += n;
}

#endif
