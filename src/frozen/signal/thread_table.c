/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The thread table: open addressing by thread id. Signal-safe, any thread. A search goes through a
 * window of places, from the id's own place up to the first place that was never used. A used place
 * never becomes unused again, so entries behind it are still found.
 *
 * Two threads may claim an entry for one thread id at the same time, and must get the same entry. A
 * claim therefore has three steps. The claimer first stores the negated id (a bid). Then it searches
 * the window for other entries and bids for the same id, and strikes out each bid that it finds. Then it
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

#include "frozen/signal/thread_table.h"
#include "frozen/memory/hash.h"
#include "frozen/signal/ticks.h"

#include "frozen/frozen.h"

#define MAX_TRIES 64     /* for two that strike each other out again and again */
#define MAX_DOUBLED 6    /* times that the looks of who gives way are doubled */
#define UNUSED 0
#define LEFT INT32_MIN   /* no thread's id, negated */

static struct sf_thread_entry *entry_at(struct sf_thread_entry *entries, int32_t tid, unsigned i)
{
	return &entries[((uint32_t)tid + i) & (SF_THREAD_TABLE_SIZE - 1)];
}

struct sf_thread_entry *sf_thread_table_find(struct sf_thread_entry *entries, int32_t tid)
{
	for (unsigned i = 0; tid > 0 && i < SF_THREAD_WINDOW; i++) {
		struct sf_thread_entry *entry = entry_at(entries, tid, i);
		const int32_t sits = atomic_load(&entry->tid);

		if (sits == tid)
			return entry;
		if (sits == UNUSED)
			return NULL;
	}
	return NULL;
}

/*
 * All of these are sequentially consistent: the proof above needs one order of all bids and
 * searches.
 */
static struct sf_thread_entry *bid(struct sf_thread_entry *entries, int32_t tid)
{
	for (unsigned i = 0; i < SF_THREAD_WINDOW; i++) {
		struct sf_thread_entry *entry = entry_at(entries, tid, i);
		int32_t sits = atomic_load(&entry->tid);

		if ((sits == UNUSED || sits == LEFT) &&
		    atomic_compare_exchange_strong(&entry->tid, &sits, -tid))
			return entry;
	}
	return NULL;
}

/* Strikes out other bids for the thread. The entry that it has already, or NULL. */
static struct sf_thread_entry *search(struct sf_thread_entry *entries, int32_t tid, const struct sf_thread_entry *own)
{
	for (unsigned i = 0; i < SF_THREAD_WINDOW; i++) {
		struct sf_thread_entry *entry = entry_at(entries, tid, i);
		int32_t sits = atomic_load(&entry->tid);

		if (entry != own && sits == -tid)
			atomic_compare_exchange_strong(&entry->tid, &sits, LEFT);
		if (entry != own && sits == tid)
			return entry;
		if (sits == UNUSED)
			return NULL;
	}
	return NULL;
}

static void withdraw(struct sf_thread_entry *entry, int32_t tid)
{
	int32_t bid = -tid;

	atomic_compare_exchange_strong(&entry->tid, &bid, LEFT);
}

/* How often to look whether another has the entry by now, before the next bid. */
static uint32_t looks_after(uint32_t place_from_first, unsigned n_tries)
{
	return 1 + (place_from_first << (n_tries < MAX_DOUBLED ? n_tries : MAX_DOUBLED));
}

static struct sf_thread_entry *find_soon(struct sf_thread_entry *entries, int32_t tid, uint32_t n_looks)
{
	struct sf_thread_entry *entry = NULL;

	while (n_looks-- && !entry)
		entry = sf_thread_table_find(entries, tid);
	return entry;
}

static bool confirm(struct sf_thread_entry *entry, int32_t tid)
{
	int32_t bid = -tid;

	if (!atomic_compare_exchange_strong(&entry->tid, &bid, tid))
		return false;
	atomic_store_explicit(&entry->clock, -1, memory_order_relaxed);
	entry->tick_carry_ns = 0;
	entry->random = (uint64_t)tid * SF_GOLDEN | 1; /* never 0 */
	return true;
}

struct sf_thread_entry *sf_thread_table_claim(struct sf_thread_entry *entries, int32_t tid, bool *new_ret)
{
	struct sf_thread_entry *entry, *other;
	uint32_t n_looks = 1;

	*new_ret = false;
	for (unsigned i = 0; tid > 0 && i < MAX_TRIES; i++) {
		entry = find_soon(entries, tid, n_looks);
		if (entry)
			return entry;
		entry = bid(entries, tid);
		if (!entry)
			return NULL;
		other = search(entries, tid, entry);
		if (other) {
			withdraw(entry, tid);
			return other;
		}
		if (confirm(entry, tid)) {
			*new_ret = true;
			return entry;
		}
		n_looks = looks_after((uint32_t)(entry - entry_at(entries, tid, 0)) & (SF_THREAD_TABLE_SIZE - 1), i);
	}
	return NULL;
}

/* Emptied first: the next claimer of the entry, in whatever way it claims, finds a new one. */
void sf_thread_table_leave(struct sf_thread_entry *entry)
{
	atomic_store_explicit(&entry->flags, 0, memory_order_relaxed);
	atomic_store_explicit(&entry->serial, 0, memory_order_relaxed);
	atomic_store_explicit(&entry->label, 0, memory_order_relaxed);
	atomic_store_explicit(&entry->request, 0, memory_order_relaxed);
	atomic_store_explicit(&entry->sent, 0, memory_order_relaxed);
	atomic_store_explicit(&entry->weight_decision, 0, memory_order_relaxed);
	atomic_store_explicit(&entry->clock_busy, 0, memory_order_relaxed);
	atomic_store_explicit(&entry->clock_unwanted, 0, memory_order_relaxed);
	atomic_store_explicit(&entry->perf_fd, 0, memory_order_relaxed);
	atomic_store_explicit(&entry->n_samples, 0, memory_order_relaxed);
	atomic_store_explicit(&entry->accounted_ns, 0, memory_order_relaxed);
	atomic_store_explicit(&entry->run_delay_ns, 0, memory_order_relaxed);
	atomic_store_explicit(&entry->requested_ns, 0, memory_order_relaxed);
	atomic_store_explicit(&entry->requester_woke_ns, 0, memory_order_relaxed);
	atomic_store_explicit(&entry->requested_run_delay_ns, 0, memory_order_relaxed);
	atomic_store_explicit(&entry->answered_ns, 0, memory_order_relaxed);
	atomic_store_explicit(&entry->clock_id, 0, memory_order_relaxed);
	atomic_store_explicit(&entry->period_ns, 0, memory_order_relaxed);
	atomic_store_explicit(&entry->set_period_ns, 0, memory_order_relaxed);
	atomic_store_explicit(&entry->api_since_ns, 0, memory_order_relaxed);
	atomic_store_explicit(&entry->api_ns, 0, memory_order_relaxed);
	atomic_store_explicit(&entry->event_amount, 0, memory_order_relaxed);
	for (unsigned i = 0; i < SF_MAX_RUNTIMES; i++)
		atomic_store_explicit(&entry->handles[i], 0, memory_order_relaxed);
	atomic_store_explicit(&entry->clock, -1, memory_order_relaxed);
	atomic_store(&entry->tid, LEFT);
}

/* Relaxed: the sum is what matters, and the thread's own clock only moves on. */
uint64_t sf_thread_entry_take_cpu(struct sf_thread_entry *entry, uint64_t cpu_now_ns, uint32_t *ticks_ret)
{
	uint64_t spoken_ns = atomic_load_explicit(&entry->accounted_ns, memory_order_relaxed);
	uint64_t cpu_ns;

	do {
		cpu_ns = cpu_now_ns > spoken_ns ? cpu_now_ns - spoken_ns : 0;
	} while (cpu_ns && !atomic_compare_exchange_weak_explicit(
				   &entry->accounted_ns, &spoken_ns, cpu_now_ns, memory_order_relaxed,
				   memory_order_relaxed));
	*ticks_ret = sf_ticks(cpu_ns, atomic_load_explicit(&entry->period_ns, memory_order_relaxed));
	return cpu_ns;
}
