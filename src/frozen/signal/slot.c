/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The hand-shake of slot.h. Signal-safe. A side moves the word out of FREE, REQUESTED or HELD by one
 * compare-and-swap. ENTERING and WALKING have one owner, which moves on with a plain store.
 *
 * Memory order: the old owner of the fields stores the word with a release. The new owner reads the
 * same word with an acquire.
 *
 *   thread   ENTERING -> HELD   release   pairs with   sampler  HELD -> WALKING        acquire
 *   sampler  WALKING -> FREE    release   pairs with   thread   FREE -> ENTERING       acquire
 *   thread   HELD -> FREE       release   pairs with   either's FREE -> ...            acquire
 *   sampler  FREE -> REQUESTED  acq_rel   pairs with   thread   REQUESTED -> ENTERING  acquire
 */
#include <limits.h>
#include <string.h>

#include "frozen/raw.h"
#include "frozen/signal/slot.h"

#include "frozen/frozen.h"

static uint32_t next_generation(uint32_t word)
{
	return (sf_slot_generation(word) + 1) & SF_SLOT_MAX_GENERATION;
}

static bool move(struct sf_slot *slot, uint32_t from, uint32_t to)
{
	return atomic_compare_exchange_strong_explicit(&slot->word, &from, to, memory_order_acq_rel,
						       memory_order_relaxed);
}

static uint32_t look(const struct sf_slot *slot)
{
	return atomic_load_explicit(&slot->word, memory_order_acquire);
}

/* Out of a state that has one owner, the caller. */
static void hand_over(struct sf_slot *slot, enum sf_slot_state state)
{
	const uint32_t word = atomic_load_explicit(&slot->word, memory_order_relaxed);

	atomic_store_explicit(&slot->word, sf_slot_word(sf_slot_generation(word), state),
			      memory_order_release);
}

void sf_slot_init(struct sf_slot *slot, uint32_t number)
{
	memset(slot, 0, sizeof(*slot));
	slot->number = number;
}

/* --- the sampler's side --- */

bool sf_slot_request(struct sf_slot *slot, uint32_t *generation_ret)
{
	const uint32_t word = look(slot);
	const uint32_t generation = next_generation(word);

	if (sf_slot_state(word) != SF_SLOT_FREE ||
	    !move(slot, word, sf_slot_word(generation, SF_SLOT_REQUESTED)))
		return false;
	*generation_ret = generation;
	return true;
}

bool sf_slot_cancel(struct sf_slot *slot, uint32_t generation)
{
	return move(slot, sf_slot_word(generation, SF_SLOT_REQUESTED),
		    sf_slot_word(generation, SF_SLOT_FREE));
}

bool sf_slot_take(struct sf_slot *slot)
{
	const uint32_t word = look(slot);

	return sf_slot_state(word) == SF_SLOT_HELD &&
	       move(slot, word, sf_slot_word(sf_slot_generation(word), SF_SLOT_WALKING));
}

void sf_slot_release(struct sf_slot *slot)
{
	hand_over(slot, SF_SLOT_FREE);
}

/*
 * Wakes all waiters. The next thread may wait on the same word by now, and a wake-up of only one
 * thread could reach that one. A thread that is woken without need checks the word and waits again.
 */
void sf_slot_wake(struct sf_slot *slot)
{
	sf_raw_futex_wake(&slot->word, INT_MAX);
}

/* --- the thread's side --- */

bool sf_slot_answer(struct sf_slot *slot, uint32_t generation)
{
	return move(slot, sf_slot_word(generation, SF_SLOT_REQUESTED),
		    sf_slot_word(generation, SF_SLOT_ENTERING));
}

static bool claim(struct sf_slot *slot)
{
	const uint32_t word = look(slot);

	return sf_slot_state(word) == SF_SLOT_FREE &&
	       move(slot, word, sf_slot_word(next_generation(word), SF_SLOT_ENTERING));
}

struct sf_slot *sf_slot_claim(struct sf_slot *slots, uint32_t n, uint32_t hint)
{
	for (uint32_t i = 0; i < n; i++) {
		struct sf_slot *slot = &slots[(hint + i) % n];

		if (claim(slot))
			return slot;
	}
	return NULL;
}

void sf_slot_leave(struct sf_slot *slot)
{
	hand_over(slot, SF_SLOT_FREE);
}

/*
 * The walk that has begun is bounded; to leave in its midst would have it walk a thread that runs.
 */
static void wait_for_walk(struct sf_slot *slot, uint32_t walking)
{
	while (look(slot) == walking)
		sf_raw_futex_wait(&slot->word, walking, 0);
}

static uint32_t wait_for_sampler(struct sf_slot *slot, uint32_t held, uint64_t patience_ns)
{
	const uint64_t until_ns = sf_raw_now_ns() + patience_ns;
	uint64_t left_ns = patience_ns;

	while (look(slot) == held && left_ns > 0) {
		uint64_t now_ns;

		sf_raw_futex_wait(&slot->word, held, left_ns);
		now_ns = sf_raw_now_ns();
		left_ns = now_ns < until_ns ? until_ns - now_ns : 0;
	}
	return look(slot);
}

bool sf_slot_stand(struct sf_slot *slot, struct sf_wake_up *wake_up, uint64_t patience_ns)
{
	const uint32_t generation =
		sf_slot_generation(atomic_load_explicit(&slot->word, memory_order_relaxed));
	const uint32_t held = sf_slot_word(generation, SF_SLOT_HELD);

	hand_over(slot, SF_SLOT_HELD);
	sf_wake_up_post(wake_up);
	if (wait_for_sampler(slot, held, patience_ns) == held &&
	    move(slot, held, sf_slot_word(generation, SF_SLOT_FREE)))
		return false;
	wait_for_walk(slot, sf_slot_word(generation, SF_SLOT_WALKING));
	return true;
}
