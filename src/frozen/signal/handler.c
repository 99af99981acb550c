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

#include "frozen/child.h"
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

SF_CHILD_DATA struct sf_handler sf_handler;

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
	struct sf_handler *handler;
	struct sf_thread_entry *entry;
	uint32_t slot, generation;   /* of the request; SF_NO_SLOT: the thread's own clock expired */
	int32_t  tid;
	uint64_t entered_ns, started_cpu_ns;
	struct sf_weight_taken weight;
};

static bool has_cookie(const struct tick *tick, const siginfo_t *info, uint64_t *value_ret)
{
	memcpy(value_ret, &info->si_value, sizeof(*value_ret));
	return *value_ret >> COOKIE_SHIFT == tick->handler->config.cookie;
}

/* Also true for a clock that was closed meanwhile: a signal of that clock may still be pending. */
static bool is_its_clock(const struct sf_thread_entry *entry, int fd)
{
	return fd > 0 && atomic_load_explicit(&entry->perf_fd, memory_order_relaxed) == fd;
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

uint64_t sf_handler_lost_value(const siginfo_t *info, const struct sf_thread_entry *entry)
{
	const bool is_empty = info->si_code == SI_USER && info->si_pid == 0 && info->si_uid == 0;

	return is_empty && entry ? atomic_load(&entry->sent) : 0;
}

static bool take_request(struct tick *tick, uint64_t value)
{
	tick->slot = (uint32_t)(value >> SLOT_SHIFT) & SF_NO_SLOT;
	tick->generation = (uint32_t)value;
	return value;
}

/*
 * Only a signal that carries the value resets entry->sent. A signal that has lost its value may be an earlier request's: the
 * sampler has stored the next request's value, and has not sent that signal yet, which may lose its value, too.
 */
static bool take_carried(struct tick *tick, uint64_t value)
{
	if (tick->entry)
		atomic_compare_exchange_strong(&tick->entry->sent, &(uint64_t){ value }, 0);
	return take_request(tick, value);
}

static bool is_ours(const siginfo_t *info, struct tick *tick)
{
	uint64_t value;

	switch (info->si_code) {
	case SI_TIMER:
		return has_cookie(tick, info, &value);
	case SI_QUEUE:
		return info->si_pid == tick->handler->config.pid && has_cookie(tick, info, &value) && take_carried(tick, value);
	case SI_USER:
		return take_request(tick, sf_handler_lost_value(info, tick->entry));
	default:
		return is_from_perf(info, tick->entry);
	}
}

/* --- the handler --- */

static void lose_tick(const struct tick *tick, enum sf_loss cause)
{
	sf_output_lose(&tick->handler->output,
		       atomic_load_explicit(&tick->entry->serial, memory_order_relaxed), cause,
		       tick->weight.cpu_ns, tick->weight.wall_ns, tick->weight.ticks);
}

/*
 * Answers the request that the signal carries. NULL: the answer is too late, and the slot may be in use
 * for another thread by now.
 */
static struct sf_slot *answer(const struct tick *tick)
{
	const struct sf_handler_link *link = &tick->handler->link;
	struct sf_slot *slot = tick->slot < link->n_slots ? &link->slots[tick->slot] : NULL;

	if (slot && sf_slot_answer(slot, tick->generation))
		return slot;
	count(&tick->handler->counts.late);
	return NULL;
}

static void start(struct tick *tick)
{
	tick->entered_ns = sf_raw_now_ns();
	tick->started_cpu_ns = sf_raw_thread_cpu_ns();
}

static void fill(struct sf_slot *slot, const struct tick *tick, const void *ucontext)
{
	slot->tid = tick->tid;
	slot->entry = (uint32_t)(tick->entry - tick->handler->link.entries);
	slot->entered_ns = slot->tick_ns = tick->entered_ns;
	slot->weighed = true;
	slot->cpu_ns = tick->weight.cpu_ns;
	slot->wall_ns = tick->weight.wall_ns;
	slot->ticks = tick->weight.ticks;
	slot->label = atomic_load_explicit(&tick->entry->label, memory_order_relaxed);
	sf_context_registers(ucontext, &slot->regs);
	slot->ucontext = ucontext;
}

static void wait_for_walk(struct sf_slot *slot, const struct tick *tick)
{
	struct sf_handler *handler = tick->handler;

	if (!sf_slot_stand(slot, &handler->link.wake_up, handler->config.patience_ns))
		lose_tick(tick, SF_LOSS_LATE);
}

static uint32_t mode_of(const struct tick *tick)
{
	return atomic_load_explicit(&tick->handler->link.mode, memory_order_relaxed);
}

/* The slot is filled. */
static void sample(struct sf_slot *slot, const struct tick *tick)
{
	if (mode_of(tick) != SF_MODE_HANDLER) {
		wait_for_walk(slot, tick);
		return;
	}
	sf_handler_sample(tick->handler, slot->workspace, slot);
	sf_slot_leave(slot);
}

/*
 * The elapsed time is at least the CPU time, and costs no system call. The CPU time is read only if the
 * elapsed time would lengthen the period, or if the period is longer than configured.
 */
static uint64_t next_period(const struct tick *tick, uint64_t present_ns)
{
	const uint64_t wanted_ns = tick->handler->config.period_ns;
	const uint64_t weight_ns = tick->weight.cpu_ns > present_ns ? tick->weight.cpu_ns : present_ns;
	const uint64_t elapsed_ns = sf_raw_now_ns() - tick->entered_ns;
	uint64_t cost_ns;

	if (present_ns == wanted_ns && sf_rearm_period(present_ns, wanted_ns, elapsed_ns + DELIVERY_NS,
						       weight_ns) == present_ns)
		return present_ns;
	cost_ns = sf_raw_thread_cpu_ns() - tick->started_cpu_ns + DELIVERY_NS;
	return sf_rearm_period(present_ns, wanted_ns, cost_ns, weight_ns);
}

/* Sets the clock that expired. A requested thread has no clock, or its clock goes on as it was set. */
static void rearm(const struct tick *tick)
{
	struct sf_thread_entry *entry = tick->entry;
	const struct sf_handler_config *config = &tick->handler->config;
	const uint64_t wanted_ns = config->period_ns;
	uint64_t present_ns = atomic_load_explicit(&entry->period_ns, memory_order_relaxed);
	uint64_t next_ns;

	if (!wanted_ns || atomic_load_explicit(&entry->clock, memory_order_relaxed) < 0 ||
	    !sf_rearm_is_due(config, entry))
		return;
	if (present_ns < wanted_ns)
		present_ns = wanted_ns;
	next_ns = next_period(tick, present_ns);
	atomic_store_explicit(&entry->period_ns, next_ns, memory_order_relaxed);
	if (next_ns > present_ns)
		count(&tick->handler->counts.backed_off);
	sf_rearm_next(config, entry, present_ns, next_ns);
}

/* The clock of the process may ring in a thread whose entry is being filled, or emptied: it has no serial then. */
static bool is_wanted(const struct tick *tick)
{
	const uint32_t passed_over = SF_ENTRY_LEAVING | SF_ENTRY_UNWATCHED;

	return tick->entry && mode_of(tick) != SF_MODE_OFF && atomic_load_explicit(&tick->entry->serial, memory_order_relaxed) &&
	       !(atomic_load_explicit(&tick->entry->flags, memory_order_relaxed) & passed_over) &&
	       !atomic_load_explicit(&tick->entry->api_since_ns, memory_order_relaxed);
}

/* The thread waits for the sampler's decision about its weight, and then walks itself. */
static void sample_by_itself(struct sf_slot *slot, struct tick *tick, const void *ucontext)
{
	struct sf_handler *handler = tick->handler;
	const enum sf_weight_decision decision =
		sf_weight_wait(tick->entry, tick->entered_ns, &handler->link.wake_up, handler->config.patience_ns);

	if (decision == SF_WEIGHT_UNDECIDED) {
		sf_slot_leave(slot);
		lose_tick(tick, SF_LOSS_LATE);
		return;
	}
	tick->weight = decision == SF_WEIGHT_WAITED ? sf_weigh_waiting(tick->entry) :
		sf_weigh(tick->entry, tick->started_cpu_ns, handler->config.period_ns);
	fill(slot, tick, ucontext);
	sf_handler_sample(tick->handler, slot->workspace, slot);
	sf_slot_leave(slot);
}

/* Until the weight is computed, the CPU time stays on the thread's account: a loss is of a tick only. */
static void sample_requested(struct sf_slot *slot, struct tick *tick, const void *ucontext)
{
	start(tick);
	tick->weight.ticks = 1;
	if (mode_of(tick) == SF_MODE_HANDLER) {
		sample_by_itself(slot, tick, ucontext);
		return;
	}
	fill(slot, tick, ucontext);
	slot->weighed = false;
	slot->cpu_clock_ns = tick->started_cpu_ns;
	wait_for_walk(slot, tick);
}

static void serve_request(struct tick *tick, const void *ucontext)
{
	struct sf_slot *slot = answer(tick);

	if (!slot)
		return;
	if (is_wanted(tick))
		sample_requested(slot, tick, ucontext);
	else
		sf_slot_leave(slot);
}

/* By CPU: then the slots in use are as many as threads that walk at once. */
static uint32_t slot_hint(const struct tick *tick)
{
	uint32_t cpu;

	return sf_raw_cpu(&cpu) ? cpu : (uint32_t)tick->tid;
}

/*
 * Whether the profile ends. A thread checks this after it has taken a slot. A sampler that ends sets the mode and then
 * checks the slots. So the sampler sees the thread's slot, or the thread sees the new mode.
 */
static bool is_over(const struct tick *tick)
{
	atomic_thread_fence(memory_order_seq_cst);
	return mode_of(tick) == SF_MODE_OFF;
}

static void serve_clock(struct tick *tick, const void *ucontext)
{
	const struct sf_handler *handler = tick->handler;
	struct sf_slot *slot;

	if (!is_wanted(tick) || sf_rearm_passes_over(tick->entry))
		return;
	start(tick);
	slot = sf_slot_claim(handler->link.slots, handler->link.n_slots, slot_hint(tick));
	if (slot && is_over(tick)) {
		sf_slot_leave(slot);
		return;
	}
	tick->weight = sf_weigh(tick->entry, tick->started_cpu_ns, handler->config.period_ns);
	if (slot) {
		fill(slot, tick, ucontext);
		sample(slot, tick);
	} else {
		count(&tick->handler->counts.no_slot);
		lose_tick(tick, SF_LOSS_NO_SLOT);
	}
	rearm(tick);
}

/* The code before pc may begin with its page: then fewer bytes can be read. */
static void mend(struct sf_handler *handler, void *ucontext)
{
	uint8_t code[SF_CONTEXT_CODE];
	uint64_t pc;

	sf_context_give_way(&handler->config, ucontext);
	if (!sf_context_interrupted(ucontext, &pc))
		return;
	for (size_t n = sizeof(code); n >= SF_CONTEXT_LEAST_CODE; n -= 1) {
		if (sf_own_memory_read(&handler->code.memory, code, pc - n, n) != n)
			continue;
		if (sf_context_mend(&handler->config, ucontext, code, n))
			count(&handler->counts.mended);
		return;
	}
}

SF_HOST_HANDLER void sf_handler_enter(int signal, siginfo_t *info, void *ucontext)
{
	struct sf_handler *handler = &sf_handler;
	struct tick tick;

	sf_raw_allow_odd_addresses();
	tick = (struct tick){ .handler = handler, .slot = SF_NO_SLOT };
	tick.tid = (int32_t)sf_raw0(SYS_gettid);
	tick.entry = handler->link.entries ? sf_thread_table_find(handler->link.entries, tick.tid) : NULL;
	if (!is_ours(info, &tick)) {
		count(&handler->counts.foreign);
		if (sf_chain_deliver(signal, info, ucontext))
			sf_context_leave_interrupted(ucontext);
		return;
	}
	if (tick.slot == SF_NO_SLOT)
		serve_clock(&tick, ucontext);
	else
		serve_request(&tick, ucontext);
	mend(handler, ucontext);
}
