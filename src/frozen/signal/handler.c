/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The signal handler: it takes a slot, and waits there for the sampler or walks itself. Called by the
 * kernel only. Large objects are in slots and workspaces, because the handler may run on an alternate
 * stack of 8 KiB, of which the kernel's frame takes up to 3. The handler's functions need 0.4 KiB of
 * that stack, and 2.9 KiB with a walk in the deepest stepper, a runtime's (gcc -O2 -fstack-usage;
 * tests/unit/test_handler.c runs both walks on such a stack).
 */
#include "frozen/signal/handler.h"

#include <stddef.h>
#include <string.h>

#include "frozen/signal/chain.h"
#include "frozen/signal/context.h"
#include "frozen/raw.h"
#include "frozen/signal/rearm.h"
#include "frozen/signal/weight.h"

#include "frozen/frozen.h"

/*
 * The cost of a tick for its thread outside our handler: the interrupt, the kernel's frame, the
 * return. The handler cannot measure it. On a small virtual machine it was 2 us for a bare signal and
 * 30 us with a perf clock's interrupt.
 */
#define DELIVERY_NS UINT64_C(8000)

static void count(_Atomic uint64_t *counter)
{
	atomic_fetch_add_explicit(counter, 1, memory_order_relaxed);
}

/* --- whose signal is it --- */

#define COOKIE_SHIFT 48 /* above every address: a program's si_value that is a pointer is never
			 * ours */
#define SLOT_SHIFT 32

uint64_t sf_handler_value(uint16_t cookie, uint32_t slot, uint32_t generation)
{
	return (uint64_t)cookie << COOKIE_SHIFT | (uint64_t)(slot & SF_NO_SLOT) << SLOT_SHIFT |
	       generation;
}

/* A tick of the calling thread, on its way to a sample or a loss. */
struct tick {
	struct sf_thread_entry *entry;
	uint32_t slot, generation;   /* that it was asked with; SF_NO_SLOT: its own clock rang */
	int32_t  tid;
	uint64_t entered_ns, started_cpu_ns;
	struct sf_weight_taken weight;
};

static bool has_cookie(const siginfo_t *info, uint64_t *value_ret)
{
	memcpy(value_ret, &info->si_value, sizeof(*value_ret));
	return *value_ret >> COOKIE_SHIFT == sf_handler.cookie;
}

/* Also true for a clock that was closed meanwhile: a signal of that clock may still be pending. */
static bool is_its_clock(const struct sf_thread_entry *entry, int fd)
{
	return fd > 0 && atomic_load_explicit(&entry->rings_as, memory_order_relaxed) == fd;
}

/*
 * A perf descriptor of ours signals only its own thread. A descriptor that is not in the thread table
 * any more may have sent its signal before it was removed. If the program has no handler for the
 * signal, such a signal is taken as ours, because the default action would end the program.
 */
static bool is_from_perf(const siginfo_t *info, const struct sf_thread_entry *entry)
{
	struct sf_kernel_action program;

	if (info->si_code < POLL_IN || info->si_code > POLL_HUP)
		return false;
	if (entry && is_its_clock(entry, info->si_fd))
		return true;
	sf_chain_get(&program);
	return program.handler == SF_CHAIN_DEFAULT;
}

static bool is_ours(const siginfo_t *info, struct tick *tick)
{
	uint64_t value;

	switch (info->si_code) {
	case SI_TIMER:
		return has_cookie(info, &value);
	case SI_QUEUE:
		if (info->si_pid != sf_handler.pid || !has_cookie(info, &value))
			return false;
		tick->slot = (uint32_t)(value >> SLOT_SHIFT) & SF_NO_SLOT;
		tick->generation = (uint32_t)value;
		return true;
	default:
		return is_from_perf(info, tick->entry);
	}
}

/* --- the handler --- */

static void lose_tick(const struct tick *tick, enum sf_loss cause)
{
	sf_handler_lose(atomic_load_explicit(&tick->entry->serial, memory_order_relaxed), cause,
		       tick->weight.cpu_ns, tick->weight.wall_ns, tick->weight.ticks);
}

/*
 * Answers the request that the signal carries. NULL: it came too late, the slot may be anybody's by
 * now.
 */
static struct sf_slot *answer(const struct tick *tick)
{
	struct sf_slot *slot = tick->slot < sf_handler.n_slots ? &sf_handler.slots[tick->slot] : NULL;

	if (slot && sf_slot_answer(slot, tick->generation))
		return slot;
	count(&sf_handler.n_late);
	return NULL;
}

static void meet(void)
{
	uint64_t met = atomic_load_explicit(&sf_handler.met_on, memory_order_relaxed);
	uint32_t cpu;

	if (!sf_raw_cpu(&cpu))
		return;
	if (sf_met_cpu(met) != cpu)
		met = (uint64_t)cpu << 32;
	else if (sf_met_run(met) == UINT32_MAX)
		return;
	atomic_store_explicit(&sf_handler.met_on, met + 1, memory_order_relaxed);
}

static void start(struct tick *tick)
{
	meet();
	tick->entered_ns = sf_raw_now_ns();
	tick->started_cpu_ns = sf_raw_thread_cpu_ns();
}

static void fill(struct sf_slot *slot, const struct tick *tick, const void *ucontext)
{
	slot->tid = tick->tid;
	slot->entry = (uint32_t)(tick->entry - sf_handler.entries);
	slot->entered_ns = slot->tick_ns = tick->entered_ns;
	slot->cpu_ns = tick->weight.cpu_ns;
	slot->wall_ns = tick->weight.wall_ns;
	slot->ticks = tick->weight.ticks;
	slot->label = atomic_load_explicit(&tick->entry->label, memory_order_relaxed);
	sf_context_registers(ucontext, &slot->regs);
	slot->ucontext = ucontext;
}

static void stand(struct sf_slot *slot, const struct tick *tick)
{
	if (!sf_slot_stand(slot, &sf_handler.wake_up, sf_handler.patience_ns))
		lose_tick(tick, SF_LOSS_LATE);
}

static bool walks_itself(void)
{
	return atomic_load_explicit(&sf_handler.mode, memory_order_relaxed) == SF_MODE_HANDLER;
}

/* In a slot that is filled. */
static void sample(struct sf_slot *slot, const struct tick *tick)
{
	if (!walks_itself()) {
		stand(slot, tick);
		return;
	}
	sf_handler_sample(slot->workspace, slot);
	sf_slot_leave(slot);
}

/* Its CPU time is asked for where the elapsed time, which is no less, is too much to go on like this; or where it did before. */
static uint64_t next_period(const struct tick *tick, uint64_t present_ns)
{
	const uint64_t asked_ns = sf_handler.period_ns;
	const uint64_t spoken_ns = tick->weight.cpu_ns > present_ns ? tick->weight.cpu_ns : present_ns;
	const uint64_t elapsed_ns = sf_raw_now_ns() - tick->entered_ns;
	uint64_t cost_ns;

	if (present_ns == asked_ns && sf_rearm_period(present_ns, asked_ns, elapsed_ns + DELIVERY_NS,
						      spoken_ns) == present_ns)
		return present_ns;
	cost_ns = sf_raw_thread_cpu_ns() - tick->started_cpu_ns + DELIVERY_NS;
	return sf_rearm_period(present_ns, asked_ns, cost_ns, spoken_ns);
}

/* Sets the clock that expired. A requested thread has no clock, or its clock goes on as it was set. */
static void rearm(const struct tick *tick)
{
	struct sf_thread_entry *entry = tick->entry;
	const uint64_t asked_ns = sf_handler.period_ns;
	uint64_t present_ns = atomic_load_explicit(&entry->period_ns, memory_order_relaxed);
	uint64_t next_ns;

	if (!asked_ns || atomic_load_explicit(&entry->clock, memory_order_relaxed) < 0 ||
	    !sf_rearm_is_due(entry))
		return;
	if (present_ns < asked_ns)
		present_ns = asked_ns;
	next_ns = next_period(tick, present_ns);
	atomic_store_explicit(&entry->period_ns, next_ns, memory_order_relaxed);
	if (next_ns > present_ns)
		count(&sf_handler.n_backed_off);
	if (!sf_rearm_is_remote(entry) &&
	    (next_ns != present_ns || (sf_handler.jitter && sf_rearm_pays(entry, next_ns))))
		sf_rearm(entry, next_ns);
}

static bool is_wanted(const struct tick *tick)
{
	const uint32_t passed_over = SF_ENTRY_LEAVING | SF_ENTRY_UNWATCHED;

	return tick->entry && atomic_load_explicit(&sf_handler.mode, memory_order_relaxed) &&
	       !(atomic_load_explicit(&tick->entry->flags, memory_order_relaxed) & passed_over) &&
	       !atomic_load_explicit(&tick->entry->visit_since_ns, memory_order_relaxed);
}

/* The sampler knows how it is to be weighed; then it walks itself. */
static void sample_judged(struct sf_slot *slot, struct tick *tick, const void *ucontext)
{
	const enum sf_judged judged =
		sf_weight_ask(tick->entry, tick->entered_ns, &sf_handler.wake_up, sf_handler.patience_ns);

	if (judged == SF_JUDGED_NOT) {
		sf_slot_leave(slot);
		lose_tick(tick, SF_LOSS_LATE);
		return;
	}
	tick->weight = judged == SF_JUDGED_WAITED ? sf_weigh_waiting(tick->entry) :
						    sf_weigh(tick->entry, tick->started_cpu_ns);
	fill(slot, tick, ucontext);
	sf_handler_sample(slot->workspace, slot);
	sf_slot_leave(slot);
}

/* Nothing is taken off its account before it is weighed: a loss is one of a tick only. */
static void sample_asked(struct sf_slot *slot, struct tick *tick, const void *ucontext)
{
	start(tick);
	tick->weight.ticks = 1;
	if (walks_itself()) {
		sample_judged(slot, tick, ucontext);
		return;
	}
	fill(slot, tick, ucontext);
	slot->cpu_ns = tick->started_cpu_ns;
	slot->ticks = SF_TICKS_UNWEIGHED;
	stand(slot, tick);
}

static void serve_request(struct tick *tick, const void *ucontext)
{
	struct sf_slot *slot = answer(tick);

	if (!slot)
		return;
	if (is_wanted(tick))
		sample_asked(slot, tick, ucontext);
	else
		sf_slot_leave(slot);
}

/* By CPU: no more of them are touched than walk at once, not one for each thread. */
static uint32_t slot_hint(const struct tick *tick)
{
	uint32_t cpu;

	return sf_raw_cpu(&cpu) ? cpu : (uint32_t)tick->tid;
}

/*
 * Whether the profile ends. A thread checks this after it has taken a slot. A sampler that ends sets the mode and then
 * checks the slots. So the sampler sees the thread's slot, or the thread sees the new mode.
 */
static bool is_over(void)
{
	atomic_thread_fence(memory_order_seq_cst);
	return atomic_load_explicit(&sf_handler.mode, memory_order_relaxed) == SF_MODE_OFF;
}

static void serve_clock(struct tick *tick, const void *ucontext)
{
	struct sf_slot *slot;

	if (!is_wanted(tick))
		return;
	start(tick);
	slot = sf_slot_claim(sf_handler.slots, sf_handler.n_slots, slot_hint(tick));
	if (slot && is_over()) {
		sf_slot_leave(slot);
		return;
	}
	tick->weight = sf_weigh(tick->entry, tick->started_cpu_ns);
	if (slot) {
		fill(slot, tick, ucontext);
		sample(slot, tick);
	} else {
		count(&sf_handler.n_no_slot);
		lose_tick(tick, SF_LOSS_NO_SLOT);
	}
	rearm(tick);
}

/* The code before pc may begin with its page: then fewer bytes can be read. */
static void mend(void *ucontext)
{
	uint8_t code[SF_CONTEXT_CODE];
	uint64_t pc;

	sf_context_give_way(ucontext);
	if (!sf_context_interrupted(ucontext, &pc))
		return;
	for (size_t n = sizeof(code); n >= SF_CONTEXT_LEAST_CODE; n -= 1) {
		if (sf_own_memory_read(&sf_handler.access, code, pc - n, n) != n)
			continue;
		if (sf_context_mend(ucontext, code, n))
			count(&sf_handler.n_mended);
		return;
	}
}

void sf_handler_enter(int signal, siginfo_t *info, void *ucontext)
{
	struct tick tick = { .slot = SF_NO_SLOT };

	tick.tid = (int32_t)sf_raw0(SYS_gettid);
	tick.entry = sf_handler.entries ? sf_thread_table_find(sf_handler.entries, tick.tid) : NULL;
	if (!is_ours(info, &tick)) {
		count(&sf_handler.n_foreign);
		sf_chain_deliver(signal, info, ucontext);
		return;
	}
	if (tick.slot == SF_NO_SLOT)
		serve_clock(&tick, ucontext);
	else
		serve_request(&tick, ucontext);
	mend(ucontext);
}
