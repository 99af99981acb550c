/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The memory of the thread table, and the calls by which a thread claims and names its own entry.
 * Threads of the program call this, and the sampler reads the result without a lock.
 */
#include "agent/seats.h"

#include <limits.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>

#include "agent/clocks.h"
#include "agent/labels.h"
#include "agent/leaving.h"
#include "frozen/inside.h"
#include "frozen/raw.h"

#define SWEEP_AFTER 1024             /* seats that threads claimed, and perhaps never gave back */
#define OWN_FLAGS (SF_SEAT_REGISTERED | SF_SEAT_NAMED)

/* --- their memory --- */

#define NAME_WORDS (SF_AGENT_NAME / sizeof(uint64_t))

/* In words, since a thread may change its name while the sampler reads it. */
struct names {
	_Atomic uint64_t of[SF_SEATS][NAME_WORDS];
};

static struct sf_seat *_Atomic all_seats;
static struct names *_Atomic all_names;
static _Atomic uint32_t n_claimed;
static _Atomic bool hurry, expected;
static _Atomic int32_t forking_tid;

static int32_t own_tid(void)
{
	return (int32_t)sf_raw0(SYS_gettid);
}

/* Two may come at once: the second one's memory is given back. */
static void *map_once(void *_Atomic *where, size_t size)
{
	void *memory = atomic_load(where), *none = NULL;

	if (memory)
		return memory;
	memory = mmap(NULL, size, PROT_READ | PROT_WRITE,
		      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (memory == MAP_FAILED)
		return NULL;
	if (atomic_compare_exchange_strong(where, &none, memory))
		return memory;
	munmap(memory, size);
	return none;
}

struct sf_seat *sf_agent_seats(void)
{
	if (!map_once((void *_Atomic *)&all_names, sizeof(struct names)))
		return NULL;
	return map_once((void *_Atomic *)&all_seats, SF_SEATS * sizeof(struct sf_seat));
}

static bool lives(int32_t tid)
{
	return sf_raw3(SYS_tgkill, sf_raw0(SYS_getpid), tid, 0) == 0;
}

static void renew(struct sf_seat *seat)
{
	atomic_store(&seat->flags,
		     (atomic_load(&seat->flags) & OWN_FLAGS) | SF_SEAT_UNWATCHED);
	atomic_store(&seat->serial, 0);
	atomic_store(&seat->spoken_ns, 0);
	atomic_store(&seat->waited_ns, 0);
	atomic_store(&seat->n_samples, 0);
	atomic_store(&seat->asked, 0);
	atomic_store(&seat->rings_as, 0);
	atomic_store(&seat->visited_ns, 0);
}

void sf_agent_seats_renew(void)
{
	struct sf_seat *seats = sf_agent_seats();

	for (uint32_t i = 0; seats && i < SF_SEATS; i++) {
		int32_t tid = atomic_load(&seats[i].tid);

		if (tid <= 0)
			continue;
		if (lives(tid))
			renew(&seats[i]);
		else
			sf_seats_leave(&seats[i]);
	}
}

/* Seats of threads that claimed one and ended before the sampler, if there is one, took note. */
static void sweep(struct sf_seat *seats)
{
	for (uint32_t i = 0; i < SF_SEATS; i++) {
		int32_t tid = atomic_load(&seats[i].tid);

		if (tid > 0 && atomic_load(&seats[i].serial) == 0 && !lives(tid))
			sf_seats_leave(&seats[i]);
	}
}

struct sf_seat *sf_agent_own_seat(struct sf_error *err)
{
	struct sf_seat *seats = sf_agent_seats(), *seat = NULL;
	bool is_new = false;

	if (seats)
		seat = sf_seats_claim(seats, own_tid(), &is_new);
	if (is_new) /* no samples before the sampler has given it its number */
		atomic_fetch_or(&seat->flags, SF_SEAT_UNWATCHED);
	if (is_new && atomic_fetch_add(&n_claimed, 1) >= SWEEP_AFTER) {
		atomic_store(&n_claimed, 0);
		sweep(seats);
	}
	if (!seat)
		sf_fail(err, SF_E_UNSUPPORTED, "there is no room for more threads (%d)", SF_SEATS);
	return seat;
}

struct sf_seat *sf_agent_find_own_seat(void)
{
	struct sf_seat *seats = atomic_load(&all_seats);

	return seats ? sf_seats_find(seats, own_tid()) : NULL;
}

void sf_agent_seat_done(struct sf_seat *seat)
{
	atomic_store(&seat->asked, 0);
	if (atomic_load(&seat->flags) & SF_SEAT_LEAVING)
		sf_raw_futex_wake(&seat->asked, INT_MAX);
}

void sf_agent_threads_hurry(void)
{
	atomic_store(&hurry, true);
	sf_bell_ring(&sf_inside.bell);
}

bool sf_agent_threads_hurried(void)
{
	return atomic_load_explicit(&hurry, memory_order_relaxed) && atomic_exchange(&hurry, false);
}

/* Wakes the sampler once for all threads that are made before the next scan. */
void sf_agent_threads_expect(void)
{
	if (!atomic_load_explicit(&expected, memory_order_relaxed) &&
	    !atomic_exchange(&expected, true))
		sf_bell_ring(&sf_inside.bell);
}

bool sf_agent_threads_expected(void)
{
	return atomic_load_explicit(&expected, memory_order_relaxed);
}

void sf_agent_threads_met(void)
{
	atomic_store(&expected, false);
}

/* --- names --- */

static _Atomic uint64_t *name_of(const struct sf_seat *seat)
{
	return atomic_load(&all_names)->of[seat - atomic_load(&all_seats)];
}

void sf_agent_seat_set_name(struct sf_seat *seat, const char name[SF_AGENT_NAME])
{
	_Atomic uint64_t *words = name_of(seat);
	uint64_t word;

	for (unsigned i = 0; i < NAME_WORDS; i++) {
		memcpy(&word, name + i * sizeof(word), sizeof(word));
		atomic_store_explicit(&words[i], word, memory_order_relaxed);
	}
}

/* The thread may be changing it: then SF_SEAT_RENAMED comes again. */
void sf_agent_seat_name(const struct sf_seat *seat, char ret[SF_AGENT_NAME])
{
	_Atomic uint64_t *words = name_of(seat);
	uint64_t word;

	for (unsigned i = 0; i < NAME_WORDS; i++) {
		word = atomic_load_explicit(&words[i], memory_order_relaxed);
		memcpy(ret + i * sizeof(word), &word, sizeof(word));
	}
	ret[SF_AGENT_NAME - 1] = 0;
}

/* --- forked children --- */

void sf_agent_seats_before_fork(void)
{
	atomic_store(&forking_tid, own_tid());
	sf_agent_labels_before_fork();
}

void sf_agent_seats_after_fork(void)
{
	sf_agent_labels_after_fork();
}

static void move_in(struct sf_seat *seats, const struct sf_seat *before, const char *name)
{
	bool is_new;
	struct sf_seat *seat = sf_seats_claim(seats, own_tid(), &is_new);

	if (!seat)
		return;
	atomic_store(&seat->flags, atomic_load(&before->flags) & OWN_FLAGS);
	atomic_store(&seat->label, atomic_load(&before->label));
	sf_agent_seat_set_name(seat, name);
}

void sf_agent_seats_forked(void)
{
	struct sf_seat *seats = atomic_load(&all_seats), *own, before = { 0 };
	char name[SF_AGENT_NAME] = "";

	sf_agent_labels_forked();
	sf_agent_leaving_forked();
	sf_agent_clock_itimer.disarm(NULL); /* a child has no timers: it was left behind, and is made anew */
	if (!seats)
		return;
	own = sf_seats_find(seats, atomic_load(&forking_tid));
	if (own) {
		sf_agent_seat_name(own, name);
		atomic_store(&before.flags, atomic_load(&own->flags));
		atomic_store(&before.label, atomic_load(&own->label));
	}
	for (uint32_t i = 0; i < SF_SEATS; i++) {
		if (atomic_load(&seats[i].tid) > 0)
			sf_agent_clock_disarm(&seats[i]);
	}
	madvise(seats, SF_SEATS * sizeof(*seats), MADV_DONTNEED);
	if (own)
		move_in(seats, &before, name);
}
