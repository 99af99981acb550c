/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Samples threads that sleep. As long as a thread sleeps on, its last sample stands for it. Else its stack is read
 * without a hold. A sleeping thread is interrupted only if its walk needs registers that /proc does not show, or if it
 * is stopped amid its own code: once for each sleep, and never in a system call that would not continue afterwards.
 * Where the capture has a source of saved registers none is interrupted.
 */
#include <string.h>

#include "capture/ptrace/ptrace.h"
#include "os/clock.h"
#include "os/syscalls.h"

/* In a job control stop (and not in a debugger's). */
static bool is_stopped(const struct sf_thread *thread)
{
	return sf_task_letter(thread->task.pid, thread->task.tid) == 'T';
}

static bool must_hold_asleep(const struct sf_capture *capture, const struct sf_thread *thread)
{
	if (capture->saved || capture->options.no_interrupt || !thread->look.placed || !thread->look.pc || sf_thread_was_held(thread))
		return false;
	/* Any register may say where its caller is, and /proc shows two. */
	if (thread->look.syscall == SF_SYSCALL_FAULT && is_stopped(thread))
		return true;
	if (atomic_load_explicit(&thread->needs.hold_at_sp, memory_order_relaxed) != thread->look.sp)
		return false;
	return sf_syscall_restarts(thread->task.pid, thread->task.tid, thread->look.syscall, thread->look.args) ||
	       is_stopped(thread);
}

static void hold_asleep(struct sf_capture *capture, struct sf_thread *thread, uint64_t now_ns)
{
	thread->hold.sleep = thread->look;
	thread->hold.switches = thread->run.switches;
	thread->hold.cpu_ns = thread->run.cpu_ns;
	thread->hold.is_new = true;
	sf_ptrace_hold(capture, thread, now_ns);
}

/* The file of /proc that says where it sleeps may be another user's: the source says it all the same. */
enum sf_copy_result sf_ptrace_copy_asleep(struct sf_capture *capture, struct sf_thread *thread, const struct sf_copy_plan *plan,
					  struct sf_stack_copy *copy)
{
	struct sf_saved saved;

	if ((thread->look.placed || thread->task.look_fd < 0) &&
	    sf_saved_get(capture->saved, thread->task.pid, thread->task.tid, true, &saved))
		return sf_copy_saved(capture->saved, &saved, plan, &capture->pages, copy);
	return sf_copy_blocked(&thread->task, &thread->look, plan, &capture->pages, copy);
}

static void read_asleep(struct sf_capture *capture, struct sf_thread *thread, uint64_t now_ns)
{
	const struct sf_copy_plan plan = sf_thread_copy_plan(thread);
	struct sf_stack_copy *copy = sf_relay_reserve(capture->relay, sf_copy_plan_room(&plan));
	enum sf_copy_result result;
	struct sf_weight weight;

	if (!copy) {
		sf_ptrace_lose(capture, thread, SF_LOSS_RING_FULL);
		return;
	}
	result = sf_ptrace_copy_asleep(capture, thread, &plan, copy);
	if (result != SF_COPY_DONE && result != SF_COPY_NOT_PLACED) {
		/* The thread has moved or ended meanwhile: no sample. Its time stays in the accounts until the next look. */
		sf_relay_drop(capture->relay);
		return;
	}
	if (result == SF_COPY_NOT_PLACED)
		*copy = (struct sf_stack_copy){ .pid = thread->task.pid, .tid = thread->task.tid,
					    .syscall = SF_SYSCALL_NONE,
					    .flags = SF_STILL_UNHELD };
	weight = sf_thread_take_asleep(thread, capture->blocked_period_ns);
	copy->flags |= capture->records_sleeps ? SF_STILL_OPEN : 0;
	copy->state = sf_ptrace_state_asleep(thread);
	copy->time_ns = now_ns;
	sf_relay_send(capture->relay, thread, &weight, 0);
	thread->sampled = true;
}

bool sf_ptrace_sleep_is_known(const struct sf_capture *capture, const struct sf_thread *thread)
{
	return thread->sampled && !atomic_load_explicit(&thread->needs.again, memory_order_relaxed) && !must_hold_asleep(capture, thread);
}

void sf_ptrace_sample_asleep(struct sf_capture *capture, struct sf_thread *thread, uint64_t now_ns)
{
	const uint64_t start_ns = sf_now_ns();

	if (thread->is_32_bit) {
		sf_ptrace_lose(capture, thread, SF_LOSS_NARROW);
		return;
	}
	capture->read_asleep = true;
	if (sf_ptrace_sleep_is_known(capture, thread)) {
		sf_watch_extend_sleep(&capture->watch, thread, now_ns);
		return;
	}
	if (must_hold_asleep(capture, thread))
		hold_asleep(capture, thread, now_ns);
	else
		read_asleep(capture, thread, now_ns);
	sf_overhead_limit_read(&capture->limit, sf_now_ns() - start_ns);
}
