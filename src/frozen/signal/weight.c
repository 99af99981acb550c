/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CPU accounting in the agent: computes the weight of a sample from the thread's CPU clock and
 * run-queue delay. Signal-safe; called by the sampled thread itself, or by the sampler that holds
 * it.
 */
#include "frozen/signal/weight.h"

#include "frozen/signal/state.h"
#include "frozen/raw.h"
#include "frozen/signal/ticks.h"

#include "frozen/frozen.h"

/* From the timer's interrupt, which displaces a thread, until the sampler runs. */
#define WAKE_NS UINT64_C(20000)
#define ON_CPU_NS UINT64_C(200000) /* in which most threads answer that were on a CPU */

static uint64_t take_waited(struct sf_thread_entry *entry)
{
	return atomic_exchange_explicit(&entry->waited_ns, 0, memory_order_relaxed);
}

struct sf_weight_taken sf_weigh(struct sf_thread_entry *entry, uint64_t cpu_clock_ns)
{
	struct sf_weight_taken ret;

	ret.cpu_ns = sf_thread_entry_take_cpu(entry, cpu_clock_ns, &ret.ticks);
	if (sf_handler.period_ns)
		ret.ticks = sf_ticks_take(&entry->over_ns, ret.cpu_ns, sf_handler.period_ns);
	ret.wall_ns = ret.cpu_ns + take_waited(entry);
	return ret;
}

struct sf_weight_taken sf_weigh_waiting(struct sf_thread_entry *entry)
{
	return (struct sf_weight_taken){ .wall_ns = take_waited(entry), .ticks = 1 };
}

/*
 * Whether the thread, which answered at entered_ns, has waited for a CPU since before the sampler
 * woke and requested it.
 */
static bool has_waited(const struct sf_thread_entry *entry, int32_t tid, uint64_t entered_ns)
{
	const uint64_t since_ns =
		entered_ns - atomic_load_explicit(&entry->asked_ns, memory_order_relaxed);
	uint64_t wait_ns;

	if (!sf_raw_wait_ns(tid, &wait_ns))
		return since_ns > ON_CPU_NS;
	return wait_ns - atomic_load_explicit(&entry->asked_wait_ns, memory_order_relaxed) >
	       since_ns + WAKE_NS;
}

void sf_weigh_asked(struct sf_slot *slot, struct sf_thread_entry *entry)
{
	const struct sf_weight_taken taken = has_waited(entry, slot->tid, slot->entered_ns) ?
		sf_weigh_waiting(entry) : sf_weigh(entry, slot->cpu_ns);

	slot->cpu_ns = taken.cpu_ns;
	slot->wall_ns = taken.wall_ns;
	slot->ticks = taken.ticks;
}

static enum sf_judged wait_for_word(struct sf_thread_entry *entry, uint64_t patience_ns)
{
	const uint64_t until_ns = sf_raw_now_ns() + patience_ns;
	uint64_t now_ns;
	uint32_t judged;

	while ((judged = atomic_load(&entry->judged)) == SF_JUDGED_NOT &&
	       (now_ns = sf_raw_now_ns()) < until_ns)
		sf_raw_futex_wait(&entry->judged, SF_JUDGED_NOT, until_ns - now_ns);
	return (enum sf_judged)judged;
}

/*
 * The side that clears judge_ns decides. If the sampler clears it, the sampler stores an answer. If
 * the thread clears it, it gets no answer. A sampler that was stopped between its two steps may store
 * the answer late. In the worst case that answer is taken for the answer to the next question.
 */
enum sf_judged sf_weight_ask(struct sf_thread_entry *entry, uint64_t entered_ns, struct sf_wake_up *wake_up,
			     uint64_t patience_ns)
{
	enum sf_judged judged;

	atomic_store(&entry->judged, SF_JUDGED_NOT);
	atomic_store(&entry->judge_ns, entered_ns);
	sf_wake_up_post(wake_up);
	judged = wait_for_word(entry, patience_ns);
	if (judged == SF_JUDGED_NOT && !atomic_exchange(&entry->judge_ns, 0))
		judged = wait_for_word(entry, patience_ns);
	return judged;
}

void sf_weight_judge(struct sf_thread_entry *entry, int32_t tid)
{
	uint64_t entered_ns = atomic_load(&entry->judge_ns);

	if (!entered_ns || !atomic_compare_exchange_strong(&entry->judge_ns, &entered_ns, 0))
		return;
	atomic_store(&entry->judged, has_waited(entry, tid, entered_ns) ? SF_JUDGED_WAITED :
									SF_JUDGED_ON_CPU);
	sf_raw_futex_wake(&entry->judged, 1);
}
