/* SPDX-License-Identifier: Apache-2.0 */
/* One sample out of a ring: what the kernel copied of the thread becomes a still, or a loss. */
#include <string.h>
#include <sys/syscall.h>

#include "capture/perf/perf.h"
#include "capture/perf/stacks.h"

#define COPY_MIN 2048u         /* bytes of a stack that are handed on at least, if there are so many */

/* Of which the record may have a part. */
static uint64_t whole_size(struct sf_thread *thread, const struct sf_perf_record *record)
{
	struct sf_regs regs;

	if (!record->regs || record->is_32_bit)
		return 0;
	sf_perf_load_regs(record->regs, &regs);
	return sf_thread_whole_size(thread, regs.r[sf_arch_host()->sp]);
}

uint32_t sf_perf_whole_size(struct sf_thread *thread, const struct sf_perf_record *record)
{
	const uint64_t size = whole_size(thread, record);

	return size <= record->stack_size ? (uint32_t)size : 0;
}

bool sf_perf_is_cut(struct sf_thread *thread, const struct sf_perf_record *record)
{
	struct sf_regs regs;

	if (!record->regs || record->is_32_bit || record->stack_size < record->stack_room)
		return false;
	sf_perf_load_regs(record->regs, &regs);
	return sf_thread_is_deeper(thread, regs.r[sf_arch_host()->sp], record->stack_size);
}

/* All of a stack that is known to be deeper: a copy that was cut sooner would give its time to the thread's next sample. */
static uint32_t bytes_to_copy(struct sf_thread *thread, const struct sf_perf_record *record)
{
	const uint64_t learnt = 2 * (uint64_t)atomic_load_explicit(&thread->needs.size, memory_order_relaxed);
	const uint64_t whole = whole_size(thread, record), want = learnt > whole ? learnt : whole;
	const uint64_t most = want > COPY_MIN ? want : COPY_MIN;

	return record->stack_size < most ? record->stack_size : (uint32_t)most;
}

/*
 * A thread that ends, or that runs another program, is in the kernel when its user memory is taken from it. It has no
 * stack there any more, and the kernel's frames are all that there are. The record of the new program follows.
 */
static bool has_left_user(const struct sf_thread *thread, const struct sf_perf_record *record)
{
	return record->n_kernel && !record->is_32_bit && (!record->regs || (!record->stack_size && thread->exec_ns));
}

/* Between the exec and the thread's first sample in user mode. */
static bool is_in_exec(struct sf_thread *thread, const struct sf_perf_record *record)
{
	if (!record->n_kernel && record->time_ns > thread->exec_ns)
		thread->exec_ns = 0;
	return thread->exec_ns && record->time_ns > thread->exec_ns;
}

/* The parts of a record that become a still. */
struct parts {
	uint32_t size;                   /* bytes of the stack */
	size_t n_kernel;                 /* so many of the kernel's frames, the first ones */
	size_t n_chain;                  /* of what it found in user mode */
	const struct sf_perf_left *left; /* the stack that the thread has left for this one; NULL: none */
};

/* `size` bytes; or all of a stack that the thread is on for a signal's handler: where it was interrupted stands at its end. */
static struct parts parts_of(const struct sf_perf *perf, const struct sf_perf_record *record, uint32_t size, size_t n_kernel)
{
	const struct sf_perf_left *left = sf_perf_signals_find(&perf->signals, record);

	return (struct parts){
		.size = left ? record->stack_size : size, .n_kernel = n_kernel, .n_chain = record->n_chain, .left = left,
	};
}

static uint32_t room_for(const struct parts *parts)
{
	const size_t n = parts->n_kernel + parts->n_chain;

	return parts->size + (parts->left ? parts->left->size : 0) + 16 + (uint32_t)(n * sizeof(uint64_t));
}

/* Behind the stack itself, whose size is set. */
static void add_left(const struct sf_perf_left *left, struct sf_stack_copy *ret)
{
	if (!left)
		return;
	memcpy(ret->stack + ((ret->stack_size + 7u) & ~7u), left->bytes, left->size);
	ret->others[0] = (struct sf_stack_piece){ .start = left->sp, .size = left->size, .more = left->cut };
	ret->n_others = 1;
}

/* Behind the kernel's frames. */
static void add_chain(const struct sf_perf_record *record, size_t n, struct sf_stack_copy *ret)
{
	ret->n_chain = (uint32_t)n;
	if (n)
		memcpy((uint64_t *)sf_stack_copy_kernel(ret) + ret->n_kernel, record->chain, n * sizeof(*record->chain));
}

/* Behind all stacks. */
static void add_kernel(const struct sf_perf_record *record, size_t n, struct sf_stack_copy *ret)
{
	ret->n_kernel = (uint32_t)n;
	if (n)
		memcpy((uint64_t *)sf_stack_copy_kernel(ret), record->kernel, n * sizeof(*record->kernel));
}

static void fill_copy(struct sf_perf *perf, struct sf_thread *thread, const struct sf_perf_record *record,
		      const struct parts *parts, struct sf_stack_copy *ret)
{
	const uint32_t size = parts->size;
	bool hole;

	*ret = (struct sf_stack_copy){
		.pid = record->pid,
		.tid = record->tid,
		.syscall = SF_SYSCALL_NONE,
		.state = SF_STATE_RUNNING,
		.flags = SF_STILL_COPY | (is_in_exec(thread, record) ? SF_STILL_IN_EXEC : 0u),
		.time_ns = record->time_ns,
		.stack_size = size,
	};
	add_left(parts->left, ret);
	add_kernel(record, parts->n_kernel, ret);
	add_chain(record, parts->n_chain, ret);
	if (has_left_user(thread, record))
		return;
	sf_perf_load_regs(record->regs, &ret->regs);
	ret->stack_start = ret->regs.r[sf_arch_host()->sp];
	hole = sf_perf_holes_note(perf, thread, record);
	ret->stack_more = hole || size < record->stack_size || record->stack_size == record->stack_room;
	ret->longest = !hole && size == record->stack_size && perf->events.stack_bytes >= SF_PERF_MAX_STACK;
	if (size)
		memcpy(ret->stack, record->stack, size);
}

static bool is_exec(int32_t syscall)
{
	return syscall == SYS_execve || syscall == SYS_execveat;
}

/* In a wait for another thread or for the outside, the kernel's own frames say no more than the name of the system call. */
static bool shows_kernel(const struct sf_thread *thread, const struct sf_perf_record *record, const struct sf_perf_wait *wait)
{
	return wait->cause != SF_CAUSE_NONE || wait->syscall == SF_SYSCALL_UNTOLD || is_exec(wait->syscall) || thread->exec_ns ||
	       has_left_user(thread, record);
}

/* Of the stack of a thread that sleeps: at least as much as the kernel copies. */
static struct sf_copy_plan plan_to_read(struct sf_thread *thread)
{
	struct sf_copy_plan plan = sf_thread_copy_plan(thread);

	if (plan.size < SF_PERF_MAX_STACK)
		plan.size = SF_PERF_MAX_STACK;
	return plan;
}

/*
 * A thread that began to run another program may sleep before that program is there, with the registers of the one before.
 * A system call that is no exec is the new program's own.
 */
static bool may_be_in_exec(const struct sf_thread *thread, const struct sf_perf_wait *wait)
{
	return thread->exec_ns && (wait->syscall < 0 || is_exec(wait->syscall));
}

/*
 * The kernel's copy is not all of the stack, and the thread still sleeps where the record shows it: the stack is read
 * there. The record has all registers. False: the thread is there no more.
 */
static bool read_asleep(struct sf_perf *perf, struct sf_thread *thread, const struct sf_perf_record *record,
			const struct sf_copy_plan *plan, size_t n_kernel, struct sf_stack_copy *ret)
{
	const unsigned sp = sf_arch_host()->sp;
	struct sf_task_look look;
	struct sf_regs regs;

	if (!sf_task_look(&thread->task, &look) ||
	    sf_copy_blocked(&thread->task, &look, plan, &perf->base.pages, ret) != SF_COPY_DONE)
		return false;
	sf_perf_load_regs(record->regs, &regs);
	if (regs.pc != ret->regs.pc || regs.r[sp] != ret->regs.r[sp])
		return false;
	ret->regs = regs;
	ret->flags = SF_STILL_COPY;
	add_kernel(record, n_kernel, ret);
	return true;
}

void sf_perf_send_sleep(struct sf_perf *perf, struct sf_thread *thread, const struct sf_perf_record *record,
			const struct sf_perf_wait *wait, uint64_t time_ns, const struct sf_weight *weight)
{
	const struct sf_copy_plan plan = plan_to_read(thread);
	/* All of the copy: where threads sleep their stacks differ, and what the last one needed says little. */
	const struct parts parts =
		parts_of(perf, record, record->stack_size, shows_kernel(thread, record, wait) ? record->n_kernel : 0);
	const struct parts kernel = { .n_kernel = parts.n_kernel };
	const uint32_t room = room_for(&parts), to_read = sf_copy_plan_room(&plan) + room_for(&kernel);
	struct sf_stack_copy *copy =
		sf_relay_reserve_waiting(perf->base.relay, thread->sleep.to_read && to_read > room ? to_read : room);
	const bool is_read = thread->sleep.to_read && !may_be_in_exec(thread, wait) &&
			     read_asleep(perf, thread, record, &plan, parts.n_kernel, copy);

	if (!is_read)
		fill_copy(perf, thread, record, &parts, copy);
	copy->state = wait->is_stopped ? SF_STATE_STOPPED : SF_STATE_BLOCKED;
	copy->syscall = wait->syscall;
	copy->cause = wait->cause;
	copy->flags |= SF_STILL_OPEN | (is_exec(wait->syscall) ? SF_STILL_IN_EXEC : 0u);
	copy->is_only = true;
	copy->room = is_read || sf_perf_stack_is_longest(record->stack_room) ? copy->stack_size : record->stack_room;
	copy->time_ns = time_ns;
	copy->args[0] = sf_perf_first_argument(record->regs);
	sf_relay_send(perf->base.relay, thread, weight, 0);
}

/* A sample that cannot be walked is a loss. */
static bool has_stack(struct sf_perf *perf, struct sf_thread *thread, const struct sf_perf_record *record,
		      const struct sf_weight *weight)
{
	if (record->regs || (record->n_kernel && !record->is_32_bit))
		return true;
	sf_relay_loss(perf->base.relay, thread, record->is_32_bit ? SF_LOSS_NARROW : SF_LOSS_DENIED, weight);
	return false;
}

/* A running thread. */
static void send(struct sf_perf *perf, struct sf_thread *thread, const struct sf_perf_record *record,
		 const struct parts *parts, bool is_only, const struct sf_weight *weight, struct sf_stack_copy *copy)
{
	fill_copy(perf, thread, record, parts, copy);
	copy->is_only = is_only;
	thread->copy_was_full = record->stack_size == record->stack_room;
	sf_relay_send(perf->base.relay, thread, weight, 0);
	thread->ran = true;
	thread->sampled = false;
}

void sf_perf_send_sample(struct sf_perf *perf, struct sf_thread *thread, const struct sf_perf_record *record)
{
	const struct sf_weight weight = sf_thread_take_share(thread, thread->batch.n-- + thread->batch.n_held, perf->base.period_ns);
	const struct parts parts = parts_of(perf, record, bytes_to_copy(thread, record), record->n_kernel);

	if (has_stack(perf, thread, record, &weight))
		send(perf, thread, record, &parts, false, &weight, sf_relay_reserve_waiting(perf->base.relay, room_for(&parts)));
}

/* All of the copy: where events happen the stacks differ, and each may be the only one of its place. */
bool sf_perf_send_event(struct sf_perf *perf, struct sf_thread *thread, const struct sf_perf_record *record,
			const struct sf_weight *weight)
{
	const struct parts parts = parts_of(perf, record, record->stack_size, record->n_kernel);
	struct sf_stack_copy *copy;

	if (!has_stack(perf, thread, record, weight))
		return true;
	copy = sf_relay_reserve(perf->base.relay, room_for(&parts));
	if (copy)
		send(perf, thread, record, &parts, true, weight, copy);
	return copy;
}
