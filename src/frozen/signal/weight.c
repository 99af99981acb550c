/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CPU accounting in the agent: computes the weight of a sample from the thread's CPU clock and
 * run-queue delay. Signal-safe; called by the sampled thread itself, or by the sampler that holds
 * it.
 */
#include "frozen/signal/weight.h"

#include "frozen/raw.h"
#include "frozen/signal/ticks.h"

#include "frozen/frozen.h"

/* From the timer's interrupt, which displaces a thread, until the sampler runs. */
#define WAKE_NS UINT64_C(20000)
#define ON_CPU_NS UINT64_C(200000) /* in which most threads answer that were on a CPU */

static uint64_t take_run_delay(struct sf_thread_entry *entry)
{
	return atomic_exchange_explicit(&entry->run_delay_ns, 0, memory_order_relaxed);
}

struct sf_weight_taken sf_weigh(struct sf_thread_entry *entry, uint64_t cpu_clock_ns, uint64_t period_ns)
{
	struct sf_weight_taken ret;

	ret.cpu_ns = sf_thread_entry_take_cpu(entry, cpu_clock_ns, &ret.ticks);
	if (period_ns)
		ret.ticks = sf_ticks_take(&entry->tick_carry_ns, ret.cpu_ns, period_ns);
	ret.wall_ns = ret.cpu_ns + take_run_delay(entry);
	return ret;
}

struct sf_weight_taken sf_weigh_waiting(struct sf_thread_entry *entry)
{
	return (struct sf_weight_taken){ .wall_ns = take_run_delay(entry), .ticks = 1 };
}

static bool was_displaced_by_sampler(const struct sf_thread_entry *entry, uint64_t began_ns)
{
	return atomic_load_explicit(&entry->requester_woke_ns, memory_order_relaxed) - began_ns <= WAKE_NS;
}

/* Whether the thread, which answered at entered_ns, waited for a CPU when it was requested, and not because of the sampler. */
static bool has_waited(const struct sf_thread_entry *entry, int32_t tid, uint64_t entered_ns)
{
	const uint64_t requested_ns = atomic_load_explicit(&entry->requested_ns, memory_order_relaxed);
	uint64_t wait_ns, began_ns;

	if (!sf_raw_wait_ns(tid, &wait_ns))
		return entered_ns - requested_ns > ON_CPU_NS;
	wait_ns -= atomic_load_explicit(&entry->requested_run_delay_ns, memory_order_relaxed);
	began_ns = entered_ns - wait_ns;
	return wait_ns && (int64_t)(requested_ns - began_ns) > 0 && !was_displaced_by_sampler(entry, began_ns);
}

void sf_weigh_requested(struct sf_slot *slot, struct sf_thread_entry *entry, uint64_t period_ns)
{
	const struct sf_weight_taken taken = has_waited(entry, slot->tid, slot->entered_ns) ?
		sf_weigh_waiting(entry) : sf_weigh(entry, slot->cpu_clock_ns, period_ns);

	slot->cpu_ns = taken.cpu_ns;
	slot->wall_ns = taken.wall_ns;
	slot->ticks = taken.ticks;
	slot->weighed = true;
}

static enum sf_weight_decision wait_for_decision(struct sf_thread_entry *entry, uint64_t patience_ns)
{
	const uint64_t until_ns = sf_raw_now_ns() + patience_ns;
	uint64_t now_ns;
	uint32_t decision;

	while ((decision = atomic_load(&entry->weight_decision)) == SF_WEIGHT_UNDECIDED &&
	       (now_ns = sf_raw_now_ns()) < until_ns)
		sf_raw_futex_wait(&entry->weight_decision, SF_WEIGHT_UNDECIDED, until_ns - now_ns);
	return (enum sf_weight_decision)decision;
}

/*
 * Of the sampler and the thread, the one that clears answered_ns wins. If the sampler clears it, the
 * sampler stores a decision. If the thread clears it, it gets none. A sampler that was stopped between
 * its two steps may store the decision late. In the worst case that decision is taken for the next one.
 */
enum sf_weight_decision sf_weight_wait(struct sf_thread_entry *entry, uint64_t entered_ns, struct sf_wake_up *wake_up,
			     uint64_t patience_ns)
{
	enum sf_weight_decision decision;

	atomic_store(&entry->weight_decision, SF_WEIGHT_UNDECIDED);
	atomic_store(&entry->answered_ns, entered_ns);
	sf_wake_up_post(wake_up);
	decision = wait_for_decision(entry, patience_ns);
	if (decision == SF_WEIGHT_UNDECIDED && !atomic_exchange(&entry->answered_ns, 0))
		decision = wait_for_decision(entry, patience_ns);
	return decision;
}

void sf_weight_decide(struct sf_thread_entry *entry, int32_t tid)
{
	uint64_t entered_ns = atomic_load(&entry->answered_ns);

	if (!entered_ns || !atomic_compare_exchange_strong(&entry->answered_ns, &entered_ns, 0))
		return;
	atomic_store(&entry->weight_decision, has_waited(entry, tid, entered_ns) ? SF_WEIGHT_WAITED :
									SF_WEIGHT_RAN);
	sf_raw_futex_wake(&entry->weight_decision, 1);
}
