/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rings into which perf events write, one for each CPU: the records in them, their sizes, and those of the copies of stacks
 * in them.
 */
#include "capture/perf/rings.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "capture/perf/allowed.h"
#include "capture/perf/events.h"
#include "capture/perf/record.h"
#include "frozen/memory/hash.h"
#include "frozen/random.h"
#include "os/clock.h"

#define RINGS_TOTAL ((size_t)64 << 20) /* of all CPUs */
#define RING_MAX ((size_t)8 << 20)
#define RING_COUNTED ((size_t)16 << 20) /* of events, which come in bursts */
#define STACK_FIRST 8192u              /* bytes of the first copies, at least */
#define STACK_FAST 4096u               /* ... of samples that come this often: 4 KiB more cost the target 0.6 us for each */
#define FAST_NS 500000
#define STACK_COUNTED 16384u
#define STACK_SIGNALS 16384u
#define RING_MIN ((size_t)128 << 10)   /* two records of the longest kind */
#define RING_WAKINGS ((size_t)4 << 20) /* of records of 88 bytes, of all threads of the machine */
#define RING_SIGNALS ((size_t)4 << 20) /* 250 records: a program may make thousands in a second, by null pointers that it catches */
#define RING_HOLDS_NS 500000000        /* of samples of one CPU, at the first size of the copies */
/* A CPU's period differs from the one that is set by so small a part at most, and by half of that at least. */
#define PERIOD_SPREAD 32

/* --- one ring --- */

bool sf_perf_ring_init(struct sf_perf_ring *ring, void *mapping, size_t page_size, size_t size)
{
	*ring = (struct sf_perf_ring){
		.page = mapping,
		.data = (const uint8_t *)mapping + page_size,
		.size = size,
		.joined = malloc(SF_PERF_MAX_RECORD),
	};
	return ring->joined;
}

void sf_perf_ring_deinit(struct sf_perf_ring *ring)
{
	free(ring->joined);
	*ring = (struct sf_perf_ring){ 0 };
}

/* The pair of the kernel's barrier before it stores data_head. More than fits is no batch. */
uint64_t sf_perf_ring_begin(struct sf_perf_ring *ring)
{
	ring->head = __atomic_load_n(&ring->page->data_head, __ATOMIC_ACQUIRE);
	ring->next = ring->page->data_tail;
	if (ring->head - ring->next > ring->size) {
		ring->n_broken++;
		ring->next = ring->head;
	}
	return ring->head - ring->next;
}

/* Of records that are not taken yet. */
static bool is_half_full(const struct sf_perf_ring *ring)
{
	return __atomic_load_n(&ring->page->data_head, __ATOMIC_ACQUIRE) - ring->page->data_tail >= ring->size / 2;
}

void sf_perf_ring_rewind(struct sf_perf_ring *ring)
{
	ring->next = ring->page->data_tail;
	if (ring->head - ring->next > ring->size)
		ring->next = ring->head;
}

/* Copies bytes of the ring, around its end if need be. */
static void copy_out(const struct sf_perf_ring *ring, uint64_t from, uint8_t *ret, size_t size)
{
	const size_t at = (size_t)(from & (ring->size - 1));
	const size_t straight = ring->size - at < size ? (size_t)(ring->size - at) : size;

	memcpy(ret, ring->data + at, straight);
	memcpy(ret + straight, ring->data, size - straight);
}

static bool is_record(const struct sf_perf_ring *ring, uint64_t size)
{
	return size >= sizeof(struct perf_event_header) && size % 8 == 0 && size <= ring->head - ring->next;
}

/* Records are multiples of 8 bytes, so a header never wraps. */
const struct perf_event_header *sf_perf_ring_peek(struct sf_perf_ring *ring)
{
	const size_t at = (size_t)(ring->next & (ring->size - 1));
	struct perf_event_header header;

	if (ring->head - ring->next < sizeof(header) || at % 8 != 0) {
		ring->next = ring->head;
		return NULL;
	}
	memcpy(&header, ring->data + at, sizeof(header));
	if (!is_record(ring, header.size)) {
		ring->n_broken++;
		ring->next = ring->head;
		return NULL;
	}
	if (at + header.size <= ring->size)
		return (const struct perf_event_header *)(const void *)(ring->data + at);
	copy_out(ring, ring->next, ring->joined, header.size);
	return (const struct perf_event_header *)(void *)ring->joined;
}

const struct perf_event_header *sf_perf_ring_again(struct sf_perf_ring *ring, uint64_t place)
{
	const uint64_t next = ring->next;
	const struct perf_event_header *header;

	ring->next = place;
	header = sf_perf_ring_peek(ring);
	ring->next = next;
	return header;
}

void sf_perf_ring_take(struct sf_perf_ring *ring)
{
	const size_t at = (size_t)(ring->next & (ring->size - 1));
	struct perf_event_header header;

	memcpy(&header, ring->data + at, sizeof(header));
	ring->next = is_record(ring, header.size) ? ring->next + header.size : ring->head;
}

void sf_perf_ring_end(struct sf_perf_ring *ring)
{
	__atomic_store_n(&ring->page->data_tail, ring->next, __ATOMIC_RELEASE);
}

/* --- the sizes of all --- */

static size_t first_ring_size(enum sf_perf_kind kind, size_t n_cpus)
{
	static const size_t sizes[] = { /* powers of two */
		[SF_PERF_CLOCK] = RING_MAX, [SF_PERF_SWITCHES] = RING_MAX, [SF_PERF_WAKINGS] = RING_WAKINGS,
		[SF_PERF_SIGNALS] = RING_SIGNALS, [SF_PERF_COUNTED] = RING_COUNTED,
	};
	size_t size = sizes[kind];

	while (size > RING_MIN && size * n_cpus > RINGS_TOTAL)
		size /= 2;
	return size;
}

static void unmap_rings(struct sf_perf_events *events)
{
	for (size_t i = 0; i < events->n_cpus; i++) {
		sf_perf_unmap(events->rings[i].page, events->ring_size);
		sf_perf_ring_deinit(&events->rings[i]);
	}
}

/* *locked_ret: it failed since this user may not lock so much memory. */
static bool map_ring(struct sf_perf_events *events, size_t i, bool *locked_ret, struct sf_error *err)
{
	void *mapping = sf_perf_map(events->owners[i], events->ring_size);

	if (!mapping) {
		*locked_ret = true;
		sf_fail_os(err, "cannot map the ring of CPU %d", events->cpus[i]);
		return sf_fail_hint(err, "This user may not lock so much memory: kernel.perf_event_mlock_kb, ulimit -l.");
	}
	if (!sf_perf_ring_init(&events->rings[i], mapping, (size_t)sysconf(_SC_PAGESIZE), events->ring_size)) {
		sf_perf_unmap(mapping, events->ring_size);
		events->rings[i] = (struct sf_perf_ring){ 0 };
		return sf_fail_memory(err);
	}
	return true;
}

static bool map_rings(struct sf_perf_events *events, bool *locked_ret, struct sf_error *err)
{
	*locked_ret = false;
	for (size_t i = 0; i < events->n_cpus; i++) {
		if (!map_ring(events, i, locked_ret, err))
			return false;
	}
	return true;
}

/* All rings have one size: the largest that this user may lock for all of them. */
static bool open_rings(struct sf_perf_events *events, struct sf_error *err)
{
	bool too_large;

	events->ring_size = first_ring_size(events->kind, events->n_cpus);
	while (!map_rings(events, &too_large, err)) {
		unmap_rings(events);
		if (!too_large || events->ring_size <= RING_MIN)
			return false;
		events->ring_size /= 2;
	}
	return true;
}

/* --- the sizes of copies --- */

static uint32_t larger(uint32_t bytes)
{
	return bytes > SF_PERF_MAX_STACK / 2 ? SF_PERF_MAX_STACK : bytes * 2;
}

/* An event comes in bursts, of which a ring is to hold many. */
static uint32_t first_stack(enum sf_perf_kind kind, size_t ring_size, uint64_t period_ns)
{
	const uint32_t most = kind == SF_PERF_COUNTED ? STACK_COUNTED : SF_PERF_MAX_STACK;
	const uint64_t n_held = period_ns ? RING_HOLDS_NS / period_ns + 1 : 1;
	uint32_t bytes = kind == SF_PERF_CLOCK && period_ns < FAST_NS ? STACK_FAST : STACK_FIRST;

	while (bytes < most && larger(bytes) * n_held <= ring_size)
		bytes = larger(bytes);
	return bytes;
}

void sf_perf_events_make_room(struct sf_perf_events *events, uint32_t bytes)
{
	while (events->stack_bytes < bytes && events->stack_bytes < SF_PERF_MAX_STACK)
		events->stack_bytes = larger(events->stack_bytes);
}

/* --- the rings of all CPUs --- */

/*
 * From the first of these CPUs on: the records of the others may be in their rings. Every other CPU has a longer period, so
 * that all together have the rate that is set.
 */
static void draw_periods(struct sf_perf_events *events, size_t first)
{
	const uint64_t half_ns = events->period_ns / PERIOD_SPREAD / 2;
	uint64_t random = sf_hash(sf_now_ns(), 64) | 1;
	bool longer = sf_random(&random) >> 63;

	for (size_t i = first; i < events->n_cpus; i++, longer = !longer) {
		const uint64_t by_ns = half_ns + sf_random(&random) % (half_ns + 1);

		events->periods_ns[i] = longer ? events->period_ns + by_ns : events->period_ns - by_ns;
	}
}

void sf_perf_events_set_period(struct sf_perf_events *events, uint64_t period_ns)
{
	const uint32_t bytes = first_stack(events->kind, events->ring_size, period_ns);

	events->period_ns = period_ns;
	draw_periods(events, 0);
	if (bytes < events->stack_bytes)
		events->stack_bytes = bytes;
}

static bool open_owner(struct sf_perf_events *events, size_t i, struct sf_error *err)
{
	events->owners[i] = sf_perf_open_ring_owner(events->cpus[i]);
	return events->owners[i] >= 0 || sf_perf_fail_open(0, events->cpus[i], errno, err);
}

bool sf_perf_events_open(struct sf_perf_events *events, uint64_t period_ns, struct sf_error *err)
{
	events->period_ns = period_ns;
	events->n_cpus = sf_perf_cpus(events->cpus, SF_PERF_MAX_CPUS);
	draw_periods(events, 0);
	if (!events->n_cpus)
		return sf_fail(err, SF_E_SYSTEM, "the system has no list of CPUs");
	for (size_t i = 0; i < events->n_cpus; i++)
		events->owners[i] = -1;
	for (size_t i = 0; i < events->n_cpus; i++) {
		if (!open_owner(events, i, err))
			return false;
	}
	if (!open_rings(events, err))
		return false;
	if (events->kind == SF_PERF_SIGNALS)
		events->stack_bytes = STACK_SIGNALS;
	else if (events->kind != SF_PERF_WAKINGS)
		events->stack_bytes = first_stack(events->kind, events->ring_size, period_ns);
	return true;
}

static bool has_ring(const struct sf_perf_events *events, int cpu)
{
	for (size_t i = 0; i < events->n_cpus; i++) {
		if (events->cpus[i] == cpu)
			return true;
	}
	return false;
}

static bool add_ring(struct sf_perf_events *events, int cpu, struct sf_error *err)
{
	const size_t i = events->n_cpus;
	bool locked;

	if (i >= SF_PERF_MAX_CPUS)
		return sf_fail(err, SF_E_UNSUPPORTED, "more than %d CPUs", SF_PERF_MAX_CPUS);
	events->cpus[i] = cpu;
	if (!open_owner(events, i, err))
		return false;
	if (!map_ring(events, i, &locked, err)) {
		close(events->owners[i]);
		return false;
	}
	events->n_cpus++;
	return true;
}

bool sf_perf_events_add_rings(struct sf_perf_events *events, struct sf_error *err)
{
	int cpus[SF_PERF_MAX_CPUS];
	const size_t n = sf_perf_cpus(cpus, SF_PERF_MAX_CPUS), n_before = events->n_cpus;
	bool fine = true;

	for (size_t i = 0; i < n; i++)
		fine &= has_ring(events, cpus[i]) || add_ring(events, cpus[i], err);
	draw_periods(events, n_before);
	return fine;
}

void sf_perf_events_close_rings(struct sf_perf_events *events)
{
	unmap_rings(events);
	for (size_t i = 0; i < events->n_cpus; i++) {
		if (events->owners[i] >= 0)
			close(events->owners[i]);
	}
	events->n_cpus = 0;
}

uint64_t sf_perf_events_begin(struct sf_perf_events *events, uint64_t began_ns)
{
	uint64_t n_bytes = 0;

	events->began_ns = began_ns;
	for (size_t i = 0; i < events->n_cpus; i++)
		n_bytes += sf_perf_ring_begin(&events->rings[i]);
	events->read_ns = sf_now_ns();
	return n_bytes;
}

/* No record is later than read_ns but by another clock, as in a time namespace: that one would never be in a batch. */
const struct perf_event_header *sf_perf_events_peek(struct sf_perf_events *events, size_t i, uint64_t *time_ret)
{
	const struct perf_event_header *header = sf_perf_ring_peek(&events->rings[i]);

	if (!header)
		return NULL;
	*time_ret = sf_perf_record_time(header);
	return *time_ret > events->began_ns && *time_ret <= events->read_ns ? NULL : header;
}

bool sf_perf_events_are_half_full(const struct sf_perf_events *events)
{
	for (size_t i = 0; i < events->n_cpus; i++) {
		if (is_half_full(&events->rings[i]))
			return true;
	}
	return false;
}

void sf_perf_events_end(struct sf_perf_events *events)
{
	for (size_t i = 0; i < events->n_cpus; i++)
		sf_perf_ring_end(&events->rings[i]);
}
