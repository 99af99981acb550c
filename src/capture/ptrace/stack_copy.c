/* SPDX-License-Identifier: Apache-2.0 */
/* Copies the registers and the stack of a held or a sleeping thread into a buffer, and makes a still of the copy. */
#include "capture/ptrace/stack_copy.h"

#include <string.h>

#include "os/process.h"

/* Where stacks end is not known, only that the copy was cut: a bound for "beyond the copy". */
#define STACK_BOUND ((uint64_t)1 << 30)
#define SLACK 2048
/* Behind the end of a stack that was copied whole, or of what was there of it: so far a walk may look. */
#define BEHIND ((uint64_t)64 << 10)

static void copy_stack(struct sf_pages *pages, uint64_t sp, uint32_t want, struct sf_stack_copy *ret)
{
	const struct sf_arch *arch = sf_arch_host();
	uint64_t start = sp - arch->red_zone;

	ret->stack_start = start;
	ret->stack_size = (uint32_t)sf_pages_read(pages, ret->pid, ret->tid, ret->stack, start, want);
	ret->stack_more = ret->stack_size == want;
}

bool sf_copy_held(struct sf_held *held, int32_t pid, uint32_t want, struct sf_pages *pages,
		  struct sf_stack_copy *ret)
{
	*ret = (struct sf_stack_copy){
		.pid = pid,
		.tid = held->tid,
		.syscall = SF_SYSCALL_NONE,
		.flags = SF_STILL_COPY,
	};
	if (!sf_hold_registers(held, &ret->regs))
		return false;
	copy_stack(pages, ret->regs.r[sf_arch_host()->sp], want, ret);
	return true;
}

enum sf_copy_result sf_copy_blocked(const struct sf_task *task, const struct sf_task_look *look,
			    uint32_t want, struct sf_pages *pages, struct sf_stack_copy *ret)
{
	struct sf_task_run before, after;
	struct sf_task_look again;

	if (!look->placed)
		return SF_COPY_NOT_PLACED;
	*ret = (struct sf_stack_copy){
		.pid = task->pid,
		.tid = task->tid,
		.syscall = look->syscall,
		.state = look->state,
		.flags = SF_STILL_COPY | SF_STILL_UNHELD,
	};
	memcpy(ret->args, look->args, sizeof(ret->args));
	sf_task_registers(look, &ret->regs);
	/* Asleep here before and after, and not once on a CPU in between: it has not moved. */
	if (!sf_task_run(task, &before) || !sf_task_look(task, &again))
		return SF_COPY_GONE;
	if (!sf_task_same_place(look, &again))
		return SF_COPY_MOVED;
	copy_stack(pages, look->sp, want, ret);
	if (!sf_task_run(task, &after))
		return SF_COPY_GONE;
	ret->switches = after.switches;
	return before.switches == after.switches ? SF_COPY_DONE : SF_COPY_MOVED;
}

static bool read_live(const struct sf_reader *reader, void *ret, uint64_t addr, size_t size)
{
	return sf_memory_read(reader->arg, ret, addr, size);
}

void sf_stack_copy_still(const struct sf_stack_copy *copy, const struct sf_arch *arch,
		    struct sf_memory *memory, struct sf_still *ret)
{
	sf_memory_turn(memory, copy->pid, copy->tid, copy->taken_ns);
	if (!copy->stack_more)
		sf_memory_set_stack(memory, copy->stack_start, copy->stack_start + copy->stack_size + BEHIND);
	*ret = (struct sf_still){
		.arch = arch,
		.regs = copy->regs,
		.memory = {
			.window = copy->stack,
			.window_start = copy->stack_start,
			.window_size = copy->stack_size,
			.stack_end = copy->stack_more ? copy->stack_start + STACK_BOUND : 0,
			.read = read_live,
			.arg = memory,
		},
		.pid = copy->pid,
		.tid = copy->tid,
		.flags = copy->flags,
		.state = copy->state,
		.syscall = copy->syscall,
		.time_ns = copy->time_ns,
		.switches = copy->switches,
		.kernel = copy->n_kernel ? sf_stack_copy_kernel(copy) : NULL,
		.n_kernel = copy->n_kernel,
	};
	memcpy(ret->syscall_args, copy->args, sizeof(ret->syscall_args));
}

uint32_t sf_copy_next(uint32_t want, uint64_t used)
{
	uint64_t target = (used + used / 4 + SLACK) & ~(uint64_t)1023;

	if (target > SF_COPY_MAX)
		target = SF_COPY_MAX;
	/* Grow at once, shrink slowly: a thread's depth comes and goes. */
	return target >= want ? (uint32_t)target : want - (want - (uint32_t)target) / 8;
}

uint32_t sf_copy_more(uint32_t want, uint32_t copied)
{
	uint64_t target = (uint64_t)copied * 4;

	if (target > SF_COPY_MAX)
		target = SF_COPY_MAX;
	return target > want ? (uint32_t)target : want;
}
