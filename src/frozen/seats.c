/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The thread table: open addressing by thread id. Signal-safe, any thread. A search goes through a
 * window of places, from the id's own place up to the first place that was never used. A used place
 * never becomes unused again, so entries behind it are still found.
 *
 * Two threads may claim a seat for one thread id at the same time, and must get the same seat. A
 * claim therefore has three steps. The claimer first stores the negated id (a bid). Then it searches
 * the window for other seats and bids for the same id, and strikes out each bid that it finds. Then it
 * confirms its own bid. A claimer whose bid was struck out begins again.
 *
 * Two bids are never both confirmed. The search of the later bid starts after both were made. It
 * strikes out the earlier bid, or finds it confirmed and withdraws.
 *
 * Two claimers in step could strike each other out again and again. So the claimer with the later
 * place gives the other one more time at each attempt. It never waits for the other claimer, which
 * may be the thread that it interrupted.
 */
#include <stddef.h>

#include "frozen/seats.h"
#include "frozen/spread.h"
#include "frozen/ticks.h"

#include "frozen/frozen.h"

#define WINDOW 64        /* ids of one process are close together: the first place is nearly always
			  * it */
#define MAX_TRIES 64     /* for two that strike each other out again and again */
#define MAX_DOUBLED 6    /* times that the looks of who gives way are doubled */
#define UNUSED 0
#define LEFT INT32_MIN   /* no thread's id, negated */

static struct sf_seat *seat_at(struct sf_seat *seats, int32_t tid, unsigned i)
{
	return &seats[((uint32_t)tid + i) & (SF_SEATS - 1)];
}

struct sf_seat *sf_seats_find(struct sf_seat *seats, int32_t tid)
{
	for (unsigned i = 0; tid > 0 && i < WINDOW; i++) {
		struct sf_seat *seat = seat_at(seats, tid, i);
		const int32_t sits = atomic_load(&seat->tid);

		if (sits == tid)
			return seat;
		if (sits == UNUSED)
			return NULL;
	}
	return NULL;
}

/*
 * All of these are sequentially consistent: the proof above needs one order of all bids and
 * searches.
 */
static struct sf_seat *bid(struct sf_seat *seats, int32_t tid)
{
	for (unsigned i = 0; i < WINDOW; i++) {
		struct sf_seat *seat = seat_at(seats, tid, i);
		int32_t sits = atomic_load(&seat->tid);

		if ((sits == UNUSED || sits == LEFT) &&
		    atomic_compare_exchange_strong(&seat->tid, &sits, -tid))
			return seat;
	}
	return NULL;
}

/* Strikes out other bids for the thread. The seat that it has already, or NULL. */
static struct sf_seat *search(struct sf_seat *seats, int32_t tid, const struct sf_seat *own)
{
	for (unsigned i = 0; i < WINDOW; i++) {
		struct sf_seat *seat = seat_at(seats, tid, i);
		int32_t sits = atomic_load(&seat->tid);

		if (seat != own && sits == -tid)
			atomic_compare_exchange_strong(&seat->tid, &sits, LEFT);
		if (seat != own && sits == tid)
			return seat;
		if (sits == UNUSED)
			return NULL;
	}
	return NULL;
}

static void withdraw(struct sf_seat *seat, int32_t tid)
{
	int32_t bid = -tid;

	atomic_compare_exchange_strong(&seat->tid, &bid, LEFT);
}

/* How often to look whether another has the seat by now, before the next bid. */
static uint32_t looks_after(uint32_t place_from_first, unsigned n_tries)
{
	return 1 + (place_from_first << (n_tries < MAX_DOUBLED ? n_tries : MAX_DOUBLED));
}

static struct sf_seat *find_soon(struct sf_seat *seats, int32_t tid, uint32_t n_looks)
{
	struct sf_seat *seat = NULL;

	while (n_looks-- && !seat)
		seat = sf_seats_find(seats, tid);
	return seat;
}

static bool confirm(struct sf_seat *seat, int32_t tid)
{
	int32_t bid = -tid;

	if (!atomic_compare_exchange_strong(&seat->tid, &bid, tid))
		return false;
	atomic_store_explicit(&seat->clock, -1, memory_order_relaxed);
	seat->over_ns = 0;
	seat->random = (uint64_t)tid * SF_GOLDEN | 1; /* never 0 */
	return true;
}

struct sf_seat *sf_seats_claim(struct sf_seat *seats, int32_t tid, bool *new_ret)
{
	struct sf_seat *seat, *other;
	uint32_t n_looks = 1;

	*new_ret = false;
	for (unsigned i = 0; tid > 0 && i < MAX_TRIES; i++) {
		seat = find_soon(seats, tid, n_looks);
		if (seat)
			return seat;
		seat = bid(seats, tid);
		if (!seat)
			return NULL;
		other = search(seats, tid, seat);
		if (other) {
			withdraw(seat, tid);
			return other;
		}
		if (confirm(seat, tid)) {
			*new_ret = true;
			return seat;
		}
		n_looks = looks_after((uint32_t)(seat - seat_at(seats, tid, 0)) & (SF_SEATS - 1), i);
	}
	return NULL;
}

/* Emptied first: whoever claims the place next, in whatever way, finds what a new one has. */
void sf_seats_leave(struct sf_seat *seat)
{
	atomic_store_explicit(&seat->flags, 0, memory_order_relaxed);
	atomic_store_explicit(&seat->serial, 0, memory_order_relaxed);
	atomic_store_explicit(&seat->label, 0, memory_order_relaxed);
	for (unsigned i = 0; i < SF_MAX_RUNTIMES; i++)
		atomic_store_explicit(&seat->handles[i], 0, memory_order_relaxed);
	atomic_store_explicit(&seat->spoken_ns, 0, memory_order_relaxed);
	atomic_store_explicit(&seat->waited_ns, 0, memory_order_relaxed);
	atomic_store_explicit(&seat->period_ns, 0, memory_order_relaxed);
	atomic_store_explicit(&seat->set_ns, 0, memory_order_relaxed);
	atomic_store_explicit(&seat->n_samples, 0, memory_order_relaxed);
	atomic_store_explicit(&seat->asked, 0, memory_order_relaxed);
	atomic_store_explicit(&seat->asked_ns, 0, memory_order_relaxed);
	atomic_store_explicit(&seat->asked_wait_ns, 0, memory_order_relaxed);
	atomic_store_explicit(&seat->judge_ns, 0, memory_order_relaxed);
	atomic_store_explicit(&seat->judged, 0, memory_order_relaxed);
	atomic_store_explicit(&seat->clock, -1, memory_order_relaxed);
	atomic_store_explicit(&seat->rings_as, 0, memory_order_relaxed);
	atomic_store_explicit(&seat->clock_id, 0, memory_order_relaxed);
	atomic_store_explicit(&seat->visit_since_ns, 0, memory_order_relaxed);
	atomic_store_explicit(&seat->visited_ns, 0, memory_order_relaxed);
	atomic_store(&seat->tid, LEFT);
}

/* Relaxed: the sum is what matters, and the thread's own clock only moves on. */
uint64_t sf_seat_take_cpu(struct sf_seat *seat, uint64_t cpu_now_ns, uint32_t *ticks_ret)
{
	uint64_t spoken_ns = atomic_load_explicit(&seat->spoken_ns, memory_order_relaxed);
	uint64_t cpu_ns;

	do {
		cpu_ns = cpu_now_ns > spoken_ns ? cpu_now_ns - spoken_ns : 0;
	} while (cpu_ns && !atomic_compare_exchange_weak_explicit(
				   &seat->spoken_ns, &spoken_ns, cpu_now_ns, memory_order_relaxed,
				   memory_order_relaxed));
	*ticks_ret = sf_ticks(cpu_ns, atomic_load_explicit(&seat->period_ns, memory_order_relaxed));
	return cpu_ns;
}
