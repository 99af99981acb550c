/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CPU accounting in the agent: computes the weight of a sample from the thread's CPU clock and
 * run-queue delay. Signal-safe; called by the sampled thread itself, or by the sampler that holds
 * it.
 */
#include "frozen/weight.h"

#include "frozen/inside.h"
#include "frozen/raw.h"
#include "frozen/ticks.h"

#include "frozen/frozen.h"

/* From the timer's interrupt, which displaces a thread, until the sampler runs. */
#define WAKE_NS UINT64_C(20000)
#define ON_CPU_NS UINT64_C(200000) /* in which most threads answer that were on a CPU */

static uint64_t take_waited(struct sf_seat *seat)
{
	return atomic_exchange_explicit(&seat->waited_ns, 0, memory_order_relaxed);
}

struct sf_weight_taken sf_weigh(struct sf_seat *seat, uint64_t cpu_clock_ns)
{
	struct sf_weight_taken ret;

	ret.cpu_ns = sf_seat_take_cpu(seat, cpu_clock_ns, &ret.ticks);
	if (sf_inside.period_ns)
		ret.ticks = sf_ticks_take(&seat->over_ns, ret.cpu_ns, sf_inside.period_ns);
	ret.wall_ns = ret.cpu_ns + take_waited(seat);
	return ret;
}

struct sf_weight_taken sf_weigh_waiting(struct sf_seat *seat)
{
	return (struct sf_weight_taken){ .wall_ns = take_waited(seat), .ticks = 1 };
}

/*
 * Whether the thread, which answered at entered_ns, has waited for a CPU since before the sampler
 * woke and requested it.
 */
static bool has_waited(const struct sf_seat *seat, int32_t tid, uint64_t entered_ns)
{
	const uint64_t since_ns =
		entered_ns - atomic_load_explicit(&seat->asked_ns, memory_order_relaxed);
	uint64_t wait_ns;

	if (!sf_raw_wait_ns(tid, &wait_ns))
		return since_ns > ON_CPU_NS;
	return wait_ns - atomic_load_explicit(&seat->asked_wait_ns, memory_order_relaxed) >
	       since_ns + WAKE_NS;
}

void sf_weigh_asked(struct sf_slot *slot, struct sf_seat *seat)
{
	const struct sf_weight_taken taken = has_waited(seat, slot->tid, slot->entered_ns) ?
		sf_weigh_waiting(seat) : sf_weigh(seat, slot->cpu_ns);

	slot->cpu_ns = taken.cpu_ns;
	slot->wall_ns = taken.wall_ns;
	slot->ticks = taken.ticks;
}

static enum sf_judged wait_for_word(struct sf_seat *seat, uint64_t patience_ns)
{
	const uint64_t until_ns = sf_raw_now_ns() + patience_ns;
	uint64_t now_ns;
	uint32_t judged;

	while ((judged = atomic_load(&seat->judged)) == SF_JUDGED_NOT &&
	       (now_ns = sf_raw_now_ns()) < until_ns)
		sf_raw_futex_wait(&seat->judged, SF_JUDGED_NOT, until_ns - now_ns);
	return (enum sf_judged)judged;
}

/*
 * The side that clears judge_ns decides. If the sampler clears it, the sampler stores an answer. If
 * the thread clears it, it gets no answer. A sampler that was stopped between its two steps may store
 * the answer late. In the worst case that answer is taken for the answer to the next question.
 */
enum sf_judged sf_weight_ask(struct sf_seat *seat, uint64_t entered_ns, struct sf_bell *bell,
			     uint64_t patience_ns)
{
	enum sf_judged judged;

	atomic_store(&seat->judged, SF_JUDGED_NOT);
	atomic_store(&seat->judge_ns, entered_ns);
	sf_bell_ring(bell);
	judged = wait_for_word(seat, patience_ns);
	if (judged == SF_JUDGED_NOT && !atomic_exchange(&seat->judge_ns, 0))
		judged = wait_for_word(seat, patience_ns);
	return judged;
}

void sf_weight_judge(struct sf_seat *seat, int32_t tid)
{
	uint64_t entered_ns = atomic_load(&seat->judge_ns);

	if (!entered_ns || !atomic_compare_exchange_strong(&seat->judge_ns, &entered_ns, 0))
		return;
	atomic_store(&seat->judged, has_waited(seat, tid, entered_ns) ? SF_JUDGED_WAITED :
									SF_JUDGED_ON_CPU);
	sf_raw_futex_wake(&seat->judged, 1);
}
