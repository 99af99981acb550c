/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Holds one thread after another: requests the hold, waits until the thread stands, copies, releases, sends.
 */
#include <string.h>

#include "capture/ptrace/ptrace.h"
#include "os/clock.h"
#include "os/cpu.h"
#include "os/perf_events.h"

#define MAX_REQUESTED 64                /* holds under way at a time */
#define PATIENCE_NS 1000000         /* how long one thread is waited for before the next */

void sf_ptrace_lose(struct sf_capture *capture, struct sf_thread *thread, enum sf_loss cause)
{
	const bool awake = sf_thread_awake(thread);
	struct sf_weight weight;

	if (awake && thread->kernel_time.holds)
		return; /* that time waits for another hold */
	weight = awake ? sf_thread_take_awake(thread, true, capture->period_ns)
		       : sf_thread_take_asleep(thread, capture->blocked_period_ns);
	sf_relay_loss(capture->relay, thread, cause, &weight);
}

uint8_t sf_ptrace_state_asleep(const struct sf_thread *thread)
{
	const struct sf_task *task = &thread->task;
	const char letter = sf_task_letter(task->pid, task->tid);

	if (letter == 'T' || letter == 't')
		return SF_STATE_STOPPED;
	return thread->look.syscall == SF_SYSCALL_FAULT && sf_task_is_frozen(task->pid, task->tid) ? SF_STATE_STOPPED : SF_STATE_BLOCKED;
}

/* Of a thread that was held while it slept. One that is let go into a job control stop is not in it again at once. */
static uint8_t state_held_asleep(const struct sf_thread *thread, const struct sf_held *held)
{
	return sf_held_in_job_stop(held) ? SF_STATE_STOPPED : sf_ptrace_state_asleep(thread);
}

/*
 * Whether the thread was held in place of samples of a deep stack (perf/holds.h), and has its stack in the kernel's copies
 * where it stands. Such moments have samples of their own. One that is held late is held for all its time.
 */
static bool is_beside_deep(const struct sf_capture *capture, struct sf_thread *thread, const struct sf_stack_copy *copy)
{
	const uint64_t size = sf_thread_whole_size(thread, copy->regs.r[sf_arch_host()->sp]);

	return thread->batch.n_held && size && size <= SF_PERF_MAX_STACK && !sf_thread_is_overdue(thread, capture->period_ns);
}

/* False: the hold gives no sample. */
static bool take_weight(const struct sf_capture *capture, struct sf_thread *thread, bool in_call, bool on_cpu,
			const struct sf_stack_copy *copy, struct sf_weight *ret)
{
	if (thread->kernel_time.holds)
		return on_cpu && sf_thread_take_kernel_time(thread, in_call, capture->period_ns, ret);
	if (is_beside_deep(capture, thread, copy))
		return false;
	*ret = on_cpu && thread->batch.n_held ? sf_thread_take_held(thread, capture->period_ns)
					      : sf_thread_take_awake(thread, on_cpu, capture->period_ns);
	return true;
}

bool sf_ptrace_weigh_awake(const struct sf_capture *capture, struct sf_thread *thread, bool in_call, bool on_cpu, uint64_t *hold_ns,
			   struct sf_stack_copy *copy, struct sf_weight *ret)
{
	*hold_ns += thread->hold.unsent_ns;
	thread->hold.unsent_ns = *hold_ns;
	if (!take_weight(capture, thread, in_call, on_cpu, copy, ret))
		return false;
	thread->hold.unsent_ns = 0;
	copy->state = on_cpu ? SF_STATE_RUNNING : SF_STATE_RUNNABLE;
	thread->ran = thread->ran || on_cpu;
	thread->n_ran += on_cpu;
	if (on_cpu)
		sf_thread_note_place(thread, in_call);
	return true;
}

/* The same of a sleeping thread. False: it left its sleep before it stood. Its time stays in the accounts until the next look. */
static bool weigh_asleep(const struct sf_capture *capture, struct sf_thread *thread, const struct sf_held *held, uint64_t *hold_ns,
			 struct sf_stack_copy *copy, struct sf_weight *ret)
{
	*hold_ns += thread->hold.unsent_ns;
	thread->hold.unsent_ns = *hold_ns;
	if (thread->look.placed && !sf_copy_is_at(copy, &thread->look))
		return false;
	thread->hold.unsent_ns = 0;
	*ret = sf_thread_take_asleep(thread, capture->blocked_period_ns);
	copy->state = state_held_asleep(thread, held);
	copy->syscall = thread->look.syscall;
	memcpy(copy->args, thread->look.args, sizeof(copy->args));
	thread->sampled = true;
	return true;
}

/* Sends what was taken of a held thread, which runs again. */
static void send_held(struct sf_capture *capture, struct sf_thread *thread, const struct sf_held *held,
		      struct sf_stack_copy *copy, uint64_t hold_ns)
{
	bool awake = sf_thread_awake(thread);
	const struct sf_task_run before = thread->run;
	bool in_call = held->syscall != SF_SYSCALL_NONE;
	bool on_cpu = sf_thread_settle(thread, capture->hold_time.stood_ns, in_call, held->in_wait);
	struct sf_weight weight;

	if (awake && capture->counts_waits)
		sf_thread_add_hold(thread, &before, hold_ns, sf_now_ns());
	if (awake ? !sf_ptrace_weigh_awake(capture, thread, in_call, on_cpu, &hold_ns, copy, &weight) :
		    !weigh_asleep(capture, thread, held, &hold_ns, copy, &weight)) {
		sf_relay_drop(capture->relay);
		return;
	}
	copy->time_ns = thread->hold.requested_ns;
	sf_relay_send(capture->relay, thread, &weight, hold_ns);
	capture->held_any = true;
}

/* A thread stands: copy, let go, send. */
static void take_held(struct sf_capture *capture, struct sf_thread *thread,
		      struct sf_held *held)
{
	const struct sf_copy_plan plan = sf_thread_copy_plan(thread);
	struct sf_stack_copy *copy = sf_relay_reserve(capture->relay, sf_copy_plan_room(&plan));
	bool complete = copy && sf_copy_held(held, thread->task.pid, &plan, &capture->pages, copy);
	uint64_t hold_ns;

	sf_hold_release(held);
	hold_ns = sf_hold_time_released(&capture->hold_time, thread->hold.requested_ns);
	if (complete) {
		send_held(capture, thread, held, copy, hold_ns);
		return;
	}
	if (copy)
		sf_relay_drop(capture->relay);
	sf_ptrace_lose(capture, thread, !copy ? SF_LOSS_RING_FULL : held->is_32_bit ? SF_LOSS_NARROW : SF_LOSS_GONE);
}

/* A thread or child has ended while it was asked for. */
static void note_ended(struct sf_capture *capture, const struct sf_held *held)
{
	if (held->tid == capture->options.child) {
		capture->child_status = held->status;
		capture->child_ended = true;
	}
	capture->watch.next_scan_ns = 0;
}

/* Handles the next answer; false when none came before the alarm. */
bool sf_ptrace_answer(struct sf_capture *capture, bool wait)
{
	struct sf_held held;
	struct sf_thread *thread;

	sf_hold_time_wait(&capture->hold_time, wait);
	if (!sf_hold_wait(&held, wait)) {
		sf_hold_time_no_answer(&capture->hold_time);
		return false;
	}
	sf_hold_time_answer(&capture->hold_time);
	thread = sf_watch_find(&capture->watch, held.tid);
	if (thread && thread->hold.is_requested) {
		thread->hold.is_requested = false;
		capture->n_requested--;
	} else {
		thread = NULL; /* ended and started again meanwhile, or exec made it another's */
	}
	if (!held.stopped)
		note_ended(capture, &held);
	else if (thread)
		take_held(capture, thread, &held);
	else
		sf_hold_release(&held);
	if (thread)
		thread->hold.displaced = SF_DISPLACED_NOWHERE;
	return true;
}

/* In a scan they are in no order. */
static void forget_requested(struct sf_capture *capture, int32_t tid)
{
	for (size_t i = 0; i < capture->watch.threads.n; i++) {
		struct sf_thread *thread = capture->watch.threads.items[i];

		if (thread->task.tid == tid && thread->hold.is_requested) {
			thread->hold.is_requested = false;
			thread->hold.displaced = SF_DISPLACED_NOWHERE;
			capture->n_requested--;
		}
	}
}

/* Their time goes on to their next sample. */
void sf_ptrace_let_go_while_waiting(void *arg)
{
	struct sf_capture *capture = arg;
	struct sf_held held;

	while (capture->n_requested && sf_hold_wait(&held, false)) {
		forget_requested(capture, held.tid);
		if (held.stopped)
			sf_hold_release(&held);
		else
			note_ended(capture, &held);
	}
}

static void request(struct sf_capture *capture, struct sf_thread *thread, uint64_t now_ns)
{
	const uint64_t requested_ns = sf_now_ns();
	enum sf_hold result;

	if (capture->n_requested >= MAX_REQUESTED)
		return; /* its time goes on to the next tick */
	result = sf_hold_request(thread->task.tid);
	if (result == SF_HOLD_REQUESTED) {
		thread->hold.is_requested = true;
		thread->hold.was_busy = false;
		thread->hold.tick_ns = now_ns;
		thread->hold.requested_ns = requested_ns;
		capture->n_requested++;
		return;
	}
	if (result == SF_HOLD_BARRED)
		return; /* the same */
	if (result == SF_HOLD_BUSY && !thread->hold.was_busy) {
		thread->hold.was_busy = true; /* the same: another stillframe holds it for a moment, perhaps */
		return;
	}
	capture->refusal = result;
	capture->refused_pid = thread->task.pid;
	capture->refused_tid = thread->task.tid;
	sf_ptrace_lose(capture, thread, result == SF_HOLD_GONE   ? SF_LOSS_GONE
			      : result == SF_HOLD_BUSY ? SF_LOSS_BUSY
						       : SF_LOSS_DENIED);
}

/* Waits for the thread that was just asked for, until the alarm; then it stays pending. */
static void wait_for_answers(struct sf_capture *capture, int n_pending)
{
	while (capture->n_requested > n_pending && sf_ptrace_answer(capture, true))
		;
}

/*
 * Where several threads are awake, moves the holding thread to the CPU of the thread that is to be held. The threads share
 * CPUs with the holding thread anyway, and waking another CPU costs ten times as much as the hold itself.
 *
 * For a single awake thread the holding thread stays free to run on any CPU. A CPU that the holding thread leaves idle
 * would fetch exactly the thread that is to be displaced, and the hold would cross CPUs after all (docs/benchmarks.md,
 * "Holding a thread").
 *
 * Reading the CPU of a thread costs half as much as the hold. The engine reads it again only after a hold that took so
 * long that the thread was on another CPU.
 */
static void move_to(const struct sf_capture *capture, struct sf_thread *thread)
{
	if (capture->n_awake_before <= 1) {
		sf_cpu_move(-1);
		return;
	}
	if (thread->cpu < 0)
		thread->cpu = (int16_t)sf_task_cpu(&thread->task);
	if (thread->cpu >= 0)
		sf_cpu_move(thread->cpu);
}

static bool stays_in_kernel(struct sf_thread *thread)
{
	if (!thread->hold.kind_is_known) {
		thread->hold.kind_is_known = true;
		thread->hold.stays_in_kernel = sf_task_stays_in_kernel(thread->task.pid, thread->task.tid);
	}
	return thread->hold.stays_in_kernel;
}

/* Of a thread that stays in the kernel. It needs no evidence that the thread ran where it is found: there is one place. */
static void sample_in_kernel(struct sf_capture *capture, struct sf_thread *thread, uint64_t now_ns)
{
	struct sf_stack_copy *copy = sf_relay_reserve(capture->relay, 0);
	uint64_t hold_ns = 0;
	struct sf_weight weight;

	if (!copy) {
		sf_ptrace_lose(capture, thread, SF_LOSS_RING_FULL);
		return;
	}
	sf_copy_none(thread->task.pid, thread->task.tid, copy);
	copy->time_ns = now_ns;
	if (sf_ptrace_weigh_awake(capture, thread, true, true, &hold_ns, copy, &weight))
		sf_relay_send(capture->relay, thread, &weight, 0);
	else
		sf_relay_drop(capture->relay);
}

void sf_ptrace_hold(struct sf_capture *capture, struct sf_thread *thread, uint64_t now_ns)
{
	int n_pending = capture->n_requested;

	if (stays_in_kernel(thread)) {
		sample_in_kernel(capture, thread, now_ns);
		return;
	}
	if (thread->is_32_bit) {
		sf_ptrace_lose(capture, thread, SF_LOSS_NARROW);
		return;
	}
	if (!thread->hold.displaced)
		move_to(capture, thread);
	sf_alarm_set(sf_now_ns() + PATIENCE_NS);
	request(capture, thread, now_ns);
	wait_for_answers(capture, n_pending);
	if (thread->hold.is_requested || sf_now_ns() - thread->hold.requested_ns > SF_ELSEWHERE_NS)
		thread->cpu = -1;
}

/*
 * Threads whose hold was requested and that do not stand yet: those that run stop at once. A thread that is still left
 * then sleeps so deeply that only the end of the holding thread releases it.
 */
void sf_ptrace_let_all_go(struct sf_capture *capture)
{
	sf_alarm_set(sf_now_ns() + 20000000);
	while (capture->n_requested && sf_ptrace_answer(capture, true))
		;
	for (size_t i = 0; i < capture->watch.threads.n; i++) {
		struct sf_thread *thread = capture->watch.threads.items[i];

		if (thread->hold.is_requested)
			sf_ptrace_lose(capture, thread, SF_LOSS_LATE);
		thread->hold.is_requested = false;
	}
}
