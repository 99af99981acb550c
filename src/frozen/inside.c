/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The signal handler, and the walk of a thread that stands in a slot. What is large stands in slots and
 * workspaces: the handler may run on an alternate stack of 8 KiB, of which the kernel's frame takes up to 3.
 * Its own functions need 0.4 KiB of it, and 2.8 with a walk in the deepest of steppers, Java's (gcc -O2
 * -fstack-usage; tests/unit/test_inside.c runs both walks on such a stack).
 */
#include "frozen/inside.h"

#include <stddef.h>
#include <string.h>

#include "frozen/chain.h"
#include "frozen/context.h"
#include "frozen/raw.h"
#include "frozen/rearm.h"

#include "frozen/frozen.h"

struct sf_inside sf_inside;

#define PATIENCE_NS UINT64_C(50000000) /* that a thread stands for a sampler that does not come */
/*
 * What a tick costs its thread besides our handler: the interrupt, the kernel's frame, the way back.
 * It cannot be measured from inside. On a small virtual machine it was 2 us for a bare signal and 30 with a perf
 * clock's interrupt.
 */
#define DELIVERY_NS UINT64_C(8000)
#define WAKE_NS UINT64_C(20000)   /* from the timer's interrupt, which displaces a thread, until the sampler runs */
#define ON_CPU_NS UINT64_C(200000) /* in which most threads answer that were on a CPU */

static void count(_Atomic uint64_t *counter)
{
	atomic_fetch_add_explicit(counter, 1, memory_order_relaxed);
}

/* --- whose signal is it --- */

#define COOKIE_SHIFT 48 /* above every address: a program's si_value that is a pointer is never ours */
#define SLOT_SHIFT 32

uint64_t sf_inside_value(uint16_t cookie, uint32_t slot, uint32_t generation)
{
	return (uint64_t)cookie << COOKIE_SHIFT | (uint64_t)(slot & SF_NO_SLOT) << SLOT_SHIFT |
	       generation;
}

/* A tick of the calling thread, on its way to a sample or a loss. */
struct tick {
	struct sf_seat *seat;
	uint32_t slot, generation;   /* that it was asked with; SF_NO_SLOT: its own clock rang */
	int32_t  tid;
	uint32_t ticks;
	uint64_t entered_ns, started_cpu_ns;
	uint64_t cpu_ns, wall_ns;
};

static bool has_cookie(const siginfo_t *info, uint64_t *value_ret)
{
	memcpy(value_ret, &info->si_value, sizeof(*value_ret));
	return *value_ret >> COOKIE_SHIFT == sf_inside.cookie;
}

/* Also when it was closed meanwhile: a signal of its may still be under way. */
static bool is_its_clock(const struct sf_seat *seat, int fd)
{
	return fd > 0 && atomic_load_explicit(&seat->rings_as, memory_order_relaxed) == fd;
}

/*
 * A descriptor of ours rings only for its own thread. One that is not known any more may have rung before it
 * was taken off: where the program has no handler that the signal could be meant for, it is ours,
 * since the default would end the program.
 */
static bool is_from_perf(const siginfo_t *info, const struct sf_seat *seat)
{
	struct sf_kernel_action program;

	if (info->si_code < POLL_IN || info->si_code > POLL_HUP)
		return false;
	if (seat && is_its_clock(seat, info->si_fd))
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
		if (info->si_pid != sf_inside.pid || !has_cookie(info, &value))
			return false;
		tick->slot = (uint32_t)(value >> SLOT_SHIFT) & SF_NO_SLOT;
		tick->generation = (uint32_t)value;
		return true;
	default:
		return is_from_perf(info, tick->seat);
	}
}

/* --- the handler --- */

static void lose_tick(const struct tick *tick, enum sf_loss cause)
{
	sf_inside_lose(atomic_load_explicit(&tick->seat->serial, memory_order_relaxed), cause,
		       tick->cpu_ns, tick->wall_ns, tick->ticks);
}

/* Answers the request that the signal carries. NULL: it came too late, the slot may be anybody's by now. */
static struct sf_slot *answer(const struct tick *tick)
{
	struct sf_slot *slot = tick->slot < sf_inside.n_slots ? &sf_inside.slots[tick->slot] : NULL;

	if (slot && sf_slot_answer(slot, tick->generation))
		return slot;
	count(&sf_inside.n_late);
	return NULL;
}

/* Rounded, and what that leaves over goes to the next sample: they add up to the CPU time. */
static uint32_t count_ticks(struct sf_seat *seat, uint64_t cpu_ns, uint64_t period_ns)
{
	const int64_t due_ns = (int64_t)cpu_ns + seat->over_ns;
	const uint32_t ticks = sf_seat_ticks(due_ns > 0 ? (uint64_t)due_ns : 0, period_ns);
	const int64_t over_ns = due_ns - (int64_t)(ticks * period_ns);

	/* Not more than a period ahead or behind: after a burst of short samples it does not matter. */
	seat->over_ns = over_ns < -(int64_t)period_ns || over_ns > (int64_t)period_ns ? 0 : over_ns;
	return ticks;
}

/* All that the sample speaks for; ticks are those that were asked for, also of a clock that backs off. */
static void weigh(struct tick *tick)
{
	struct sf_seat *seat = tick->seat;

	tick->entered_ns = sf_raw_now_ns();
	tick->started_cpu_ns = sf_raw_thread_cpu_ns();
	tick->cpu_ns = sf_seat_take_cpu(seat, tick->started_cpu_ns, &tick->ticks);
	if (sf_inside.period_ns)
		tick->ticks = count_ticks(seat, tick->cpu_ns, sf_inside.period_ns);
	tick->wall_ns = tick->cpu_ns +
			atomic_exchange_explicit(&seat->waited_ns, 0, memory_order_relaxed);
}

/*
 * Whether it was on a CPU when it was asked. If it had been waiting for one since before, it stands where it was
 * preempted, mostly behind a system call, and that says nothing of where it used CPU time: that stays
 * on its account. A wait that began when the sampler woke is the sampler's doing. (Who rings himself is on a CPU.)
 */
static bool has_waited(const struct tick *tick)
{
	const uint64_t since_ns =
		sf_raw_now_ns() - atomic_load_explicit(&tick->seat->asked_ns, memory_order_relaxed);
	uint64_t wait_ns;

	if (!sf_raw_wait_ns(&wait_ns))
		return since_ns > ON_CPU_NS;
	return wait_ns - atomic_load_explicit(&tick->seat->asked_wait_ns, memory_order_relaxed) >
	       since_ns + WAKE_NS;
}

static void weigh_waiting(struct tick *tick)
{
	tick->entered_ns = sf_raw_now_ns();
	tick->started_cpu_ns = sf_raw_thread_cpu_ns();
	tick->cpu_ns = 0;
	tick->wall_ns = atomic_exchange_explicit(&tick->seat->waited_ns, 0, memory_order_relaxed);
	tick->ticks = 1;
}

static void fill(struct sf_slot *slot, const struct tick *tick, const void *ucontext)
{
	slot->tid = tick->tid;
	slot->seat = (uint32_t)(tick->seat - sf_inside.seats);
	slot->entered_ns = slot->tick_ns = tick->entered_ns;
	slot->cpu_ns = tick->cpu_ns;
	slot->wall_ns = tick->wall_ns;
	slot->ticks = tick->ticks;
	slot->label = atomic_load_explicit(&tick->seat->label, memory_order_relaxed);
	sf_context_registers(ucontext, &slot->regs);
	slot->ucontext = ucontext;
}

static void sample(struct sf_slot *slot, const struct tick *tick, const void *ucontext)
{
	fill(slot, tick, ucontext);
	if (atomic_load_explicit(&sf_inside.mode, memory_order_relaxed) == SF_INSIDE_HANDLER) {
		sf_inside_sample(slot->workspace, slot);
		sf_slot_leave(slot);
	} else if (!sf_slot_stand(slot, &sf_inside.bell, PATIENCE_NS)) {
		lose_tick(tick, SF_LOSS_LATE);
	}
}

/* Sets the clock that rang. One that was asked has none, or it rings on as it was set. */
static void rearm(const struct tick *tick)
{
	struct sf_seat *seat = tick->seat;
	const uint64_t asked_ns = sf_inside.period_ns;
	const uint64_t cost_ns = sf_raw_thread_cpu_ns() - tick->started_cpu_ns + DELIVERY_NS;
	uint64_t present_ns = atomic_load_explicit(&seat->period_ns, memory_order_relaxed);
	uint64_t next_ns;

	if (!asked_ns || atomic_load_explicit(&seat->clock, memory_order_relaxed) < 0 ||
	    !sf_rearm_is_due(seat))
		return;
	if (present_ns < asked_ns)
		present_ns = asked_ns;
	next_ns = sf_rearm_period(present_ns, asked_ns, cost_ns,
				  tick->cpu_ns > present_ns ? tick->cpu_ns : present_ns);
	atomic_store_explicit(&seat->period_ns, next_ns, memory_order_relaxed);
	if (next_ns > present_ns)
		count(&sf_inside.n_backed_off);
	if (!sf_rearm_is_remote(seat) &&
	    (next_ns != present_ns || (sf_inside.jitter && sf_rearm_pays(seat, next_ns))))
		sf_rearm(seat, next_ns);
}

static bool is_wanted(const struct tick *tick)
{
	const uint32_t passed_over = SF_SEAT_LEAVING | SF_SEAT_UNWATCHED;

	return tick->seat && atomic_load_explicit(&sf_inside.mode, memory_order_relaxed) &&
	       !(atomic_load_explicit(&tick->seat->flags, memory_order_relaxed) & passed_over) &&
	       !atomic_load_explicit(&tick->seat->visit_since_ns, memory_order_relaxed);
}

static void serve_request(struct tick *tick, const void *ucontext)
{
	struct sf_slot *slot = answer(tick);

	if (!slot)
		return;
	if (!is_wanted(tick)) {
		sf_slot_leave(slot);
		return;
	}
	if (has_waited(tick))
		weigh_waiting(tick);
	else
		weigh(tick);
	sample(slot, tick, ucontext);
}

static void serve_clock(struct tick *tick, const void *ucontext)
{
	struct sf_slot *slot;

	if (!is_wanted(tick))
		return;
	weigh(tick);
	slot = sf_slot_claim(sf_inside.slots, sf_inside.n_slots, (uint32_t)tick->tid);
	if (slot) {
		sample(slot, tick, ucontext);
	} else {
		count(&sf_inside.n_no_slot);
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
		if (sf_self_read(&sf_inside.access, code, pc - n, n) != n)
			continue;
		if (sf_context_mend(ucontext, code, n))
			count(&sf_inside.n_mended);
		return;
	}
}

void sf_inside_handler(int signal, siginfo_t *info, void *ucontext)
{
	struct tick tick = { .slot = SF_NO_SLOT };

	tick.tid = (int32_t)sf_raw0(SYS_gettid);
	tick.seat = sf_inside.seats ? sf_seats_find(sf_inside.seats, tick.tid) : NULL;
	if (!is_ours(info, &tick)) {
		count(&sf_inside.n_foreign);
		sf_chain_deliver(signal, info, ucontext);
		return;
	}
	if (tick.slot == SF_NO_SLOT)
		serve_clock(&tick, ucontext);
	else
		serve_request(&tick, ucontext);
	mend(ucontext);
}
