/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Copies the registers and the stacks of a held or a sleeping thread into a buffer, makes a still of the copy, and finds the
 * leads to stacks that the copy lacks.
 */
#include "capture/ptrace/stack_copy.h"

#include <string.h>

#include "os/process.h"

/*
 * The end of a stack is not known, only that the copy was cut. An address that no copy can reach is taken for one on
 * another stack.
 */
#define STACK_BOUND ((uint64_t)SF_COPY_MAX + (64u << 10))
#define MAX_OTHER (SF_COPY_MAX / 4)  /* bytes of another stack */
#define BELOW 4352u                  /* of where a lead points to, there is more of its frame (frozen/unwind/step_switch.c) */
#define SLACK 2048
#define SHRINK 64           /* copies take one of so many parts off what is too much */
/* Behind the end of a stack that was copied whole, or of what was there of it: so far a walk may look. */
#define BEHIND ((uint64_t)64 << 10)
#define MAX_CALL 4u                      /* bytes of the instruction that makes a system call */
#define MAX_FRAME 4096u                  /* of a stack without a copy: from the start of a frame to what a walk reads first */
#define MAX_SEARCHED ((uint64_t)1 << 20) /* bytes of a window, for a lead */

static uint32_t aligned(uint32_t size)
{
	return (size + 7u) & ~7u;
}

static uint32_t other_size(const struct sf_copy_plan *plan)
{
	return aligned(plan->size < MAX_OTHER ? plan->size : MAX_OTHER) + BELOW;
}

uint32_t sf_copy_plan_room(const struct sf_copy_plan *plan)
{
	return plan->n_leads ? aligned(plan->size) + plan->n_leads * other_size(plan) : plan->size;
}

/* The end of all stacks in the buffer. */
static uint32_t stacks_end(const struct sf_stack_copy *copy)
{
	uint32_t end = aligned(copy->stack_size);

	for (uint32_t i = 0; i < copy->n_others; i++)
		end += aligned(copy->others[i].size);
	return end;
}

const uint64_t *sf_stack_copy_kernel(const struct sf_stack_copy *copy)
{
	return (const uint64_t *)(const void *)(copy->stack + stacks_end(copy));
}

uint32_t sf_stack_copy_tail(const struct sf_stack_copy *copy)
{
	const uint32_t n = copy->n_kernel + copy->n_chain;

	return n || copy->n_others ? stacks_end(copy) + n * (uint32_t)sizeof(uint64_t) : copy->stack_size;
}

/* The windows onto what has been copied so far. */
static void look_into(const struct sf_stack_copy *copy, struct sf_window others[SF_MAX_OTHER_STACKS],
		      struct sf_reader *ret)
{
	const uint8_t *bytes = copy->stack + aligned(copy->stack_size);

	*ret = (struct sf_reader){
		.window = copy->stack,
		.window_start = copy->stack_start,
		.window_size = copy->stack_size,
		.stack_end = copy->stack_more ? copy->stack_start + STACK_BOUND : 0,
		.others = others,
		.n_others = copy->n_others,
		.copied = true,
	};
	for (uint32_t i = 0; i < copy->n_others; i++) {
		const struct sf_stack_piece *piece = &copy->others[i];

		others[i] = (struct sf_window){
			.bytes = bytes,
			.start = piece->start,
			.size = piece->size,
			.stack_end = piece->more ? piece->start + MAX_OTHER : 0,
		};
		bytes += aligned(piece->size);
	}
}

/* Where a lead points to, if the copy has that word. */
static bool read_lead(const struct sf_stack_copy *copy, const struct sf_reader *windows, uint64_t lead, uint64_t *ret)
{
	const unsigned fp = sf_arch_host()->fp;

	if (lead != SF_LEAD_FP)
		return sf_read_u64(windows, lead, ret);
	*ret = copy->regs.r[fp];
	return sf_reg_known(&copy->regs, fp);
}

static void follow(struct sf_pages *pages, uint64_t lead, uint32_t want, struct sf_stack_copy *ret)
{
	struct sf_window others[SF_MAX_OTHER_STACKS];
	struct sf_stack_piece piece = { 0 };
	struct sf_reader windows;
	uint64_t pointer;

	look_into(ret, others, &windows);
	if (!read_lead(ret, &windows, lead, &pointer) || sf_in_window(&windows, pointer) || pointer < BELOW)
		return;
	piece.start = (pointer - BELOW) & ~UINT64_C(7);
	piece.size = (uint32_t)sf_pages_read(pages, ret->pid, ret->tid, ret->stack + stacks_end(ret), piece.start, want);
	piece.more = piece.size == want;
	if (piece.size)
		ret->others[ret->n_others++] = piece;
}

/* A stack that is deep at times has room for that at each copy, and takes it then only. */
static uint32_t size_from(const struct sf_copy_plan *plan, uint64_t start)
{
	const uint32_t whole = plan->root_sp > start ? sf_copy_next(0, plan->root_sp - start) : plan->size;

	return whole < plan->size ? whole : plan->size;
}

static void copy_stacks(struct sf_pages *pages, uint64_t sp, const struct sf_copy_plan *plan, struct sf_stack_copy *ret)
{
	ret->stack_start = sp - sf_arch_host()->red_zone;
	ret->room = size_from(plan, ret->stack_start);
	ret->stack_size = (uint32_t)sf_pages_read(pages, ret->pid, ret->tid, ret->stack, ret->stack_start, ret->room);
	ret->stack_more = ret->stack_size == ret->room;
	ret->follows_leads = true;
	for (uint32_t i = 0; i < plan->n_leads; i++)
		follow(pages, plan->leads[i], other_size(plan), ret);
}

bool sf_copy_held(struct sf_held *held, int32_t pid, const struct sf_copy_plan *plan, struct sf_pages *pages,
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
	copy_stacks(pages, ret->regs.r[sf_arch_host()->sp], plan, ret);
	return true;
}

bool sf_copy_is_at(const struct sf_stack_copy *copy, const struct sf_task_look *look)
{
	return copy->regs.r[sf_arch_host()->sp] == look->sp && look->pc - copy->regs.pc <= MAX_CALL;
}

void sf_copy_none(int32_t pid, int32_t tid, struct sf_stack_copy *ret)
{
	*ret = (struct sf_stack_copy){ .pid = pid, .tid = tid, .syscall = SF_SYSCALL_NONE, .flags = SF_STILL_COPY };
}

/* All but the stack, of a thread that is not held. */
static void begin_unheld(int32_t pid, int32_t tid, const struct sf_task_look *look, struct sf_stack_copy *ret)
{
	*ret = (struct sf_stack_copy){
		.pid = pid,
		.tid = tid,
		.syscall = look->syscall,
		.state = look->state,
		.flags = SF_STILL_COPY | SF_STILL_UNHELD,
	};
	memcpy(ret->args, look->args, sizeof(ret->args));
}

bool sf_saved_stood(const struct sf_saved_source *source, const struct sf_saved *saved, uint64_t *switches_ret)
{
	struct sf_saved now;

	if (saved->look.state != SF_STATE_RUNNABLE) {
		*switches_ret = sf_task_switches(saved->pid, saved->tid);
		return *switches_ret == saved->switches;
	}
	*switches_ret = saved->switches;
	return sf_saved_get(source, saved->pid, saved->tid, true, &now) && now.switches == saved->switches &&
	       now.left_after == saved->left_before;
}

enum sf_copy_result sf_copy_saved(const struct sf_saved_source *source, const struct sf_saved *saved,
				  const struct sf_copy_plan *plan, struct sf_pages *pages, struct sf_stack_copy *ret)
{
	bool stood;

	begin_unheld(saved->pid, saved->tid, &saved->look, ret);
	ret->regs = saved->regs;
	copy_stacks(pages, saved->look.sp, plan, ret);
	stood = sf_saved_stood(source, saved, &ret->switches);
	return stood ? SF_COPY_DONE : ret->switches ? SF_COPY_MOVED : SF_COPY_GONE;
}

enum sf_copy_result sf_copy_blocked(const struct sf_task *task, const struct sf_task_look *look,
			    const struct sf_copy_plan *plan, struct sf_pages *pages, struct sf_stack_copy *ret)
{
	struct sf_task_run before, after;
	struct sf_task_look again;

	if (!look->placed)
		return SF_COPY_NOT_PLACED;
	begin_unheld(task->pid, task->tid, look, ret);
	sf_task_registers(look, &ret->regs);
	/* Asleep here before and after, and not once on a CPU in between: it has not moved. */
	if (!sf_task_run(task, &before) || !sf_task_look(task, &again))
		return SF_COPY_GONE;
	if (!sf_task_same_place(look, &again))
		return SF_COPY_MOVED;
	copy_stacks(pages, look->sp, plan, ret);
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
		    struct sf_memory *memory, struct sf_copied_still *ret)
{
	sf_memory_turn(memory, copy->pid, copy->tid, copy->taken_ns);
	if (!copy->stack_more)
		sf_memory_set_stack(memory, copy->stack_start, copy->stack_start + copy->stack_size + BEHIND);
	ret->unread = 0;
	ret->still = (struct sf_still){
		.arch = arch,
		.regs = copy->regs,
		.pid = copy->pid,
		.tid = copy->tid,
		.flags = copy->flags,
		.state = copy->state,
		.cause = copy->cause,
		.syscall = copy->syscall,
		.time_ns = copy->time_ns,
		.switches = copy->switches,
		.kernel = copy->n_kernel ? sf_stack_copy_kernel(copy) : NULL,
		.n_kernel = copy->n_kernel,
		.chain = copy->n_chain ? sf_stack_copy_kernel(copy) + copy->n_kernel : NULL,
		.n_chain = copy->n_chain,
	};
	look_into(copy, ret->others, &ret->still.memory);
	ret->still.memory.read = read_live;
	ret->still.memory.arg = memory;
	ret->still.memory.unread = &ret->unread;
	memcpy(ret->still.syscall_args, copy->args, sizeof(ret->still.syscall_args));
}

uint32_t sf_copy_next(uint32_t want, uint64_t used)
{
	uint64_t target = (used + used / 4 + SLACK) & ~(uint64_t)1023;

	if (target > SF_COPY_MAX)
		target = SF_COPY_MAX;
	/* Grow at once, shrink slowly: a thread's depth comes and goes, and the time of a copy that is cut goes to another sample. */
	return target >= want ? (uint32_t)target : want - (want - (uint32_t)target) / SHRINK;
}

uint32_t sf_copy_more(uint32_t want, uint32_t copied)
{
	uint64_t target = (uint64_t)copied * 4;

	if (target > SF_COPY_MAX)
		target = SF_COPY_MAX;
	return target > want ? (uint32_t)target : want;
}

uint32_t sf_copy_up_to(const struct sf_stack_copy *copy, uint64_t unread)
{
	const uint64_t used = unread - copy->stack_start + sizeof(uint64_t); /* below the copy it is larger than all copies */

	return copy->follows_leads && used > copy->room && used <= SF_COPY_MAX ? sf_copy_next(copy->room, used) : 0;
}

/* --- leads --- */

struct sf_copy_plan sf_stack_leads_plan(struct sf_stack_leads *leads, uint32_t size)
{
	struct sf_copy_plan plan = { .size = size };

	for (unsigned i = 0; i < SF_MAX_OTHER_STACKS; i++) {
		const uint64_t at = atomic_load_explicit(&leads->at[i], memory_order_relaxed);

		if (at)
			plan.leads[plan.n_leads++] = at;
	}
	return plan;
}

/*
 * The best word so far: of the pointer to exactly there, or of the lowest one, the highest word. The code that left a stack
 * has stored the end of it at the top of the new one.
 */
struct best {
	uint64_t at, pointer;
};

static bool is_better(uint64_t pointer, const struct best *best, uint64_t unread)
{
	return !best->at || pointer == unread || (best->pointer != unread && pointer <= best->pointer);
}

static bool is_near(uint64_t pointer, uint64_t unread)
{
	return pointer <= unread && unread - pointer < MAX_FRAME;
}

static void search(const uint8_t *bytes, uint64_t start, uint64_t size, uint64_t unread, struct best *best)
{
	uint64_t pointer;

	if (size > MAX_SEARCHED)
		size = MAX_SEARCHED;
	for (uint64_t i = (0 - start) % 8; i + 8 <= size; i += 8) {
		memcpy(&pointer, bytes + i, sizeof(pointer));
		if (is_near(pointer, unread) && is_better(pointer, best, unread))
			*best = (struct best){ start + i, pointer };
	}
}

static bool is_known(struct sf_stack_leads *leads, uint64_t at)
{
	for (unsigned i = 0; i < SF_MAX_OTHER_STACKS; i++) {
		if (atomic_load_explicit(&leads->at[i], memory_order_relaxed) == at)
			return true;
	}
	return false;
}

bool sf_stack_leads_find(struct sf_stack_leads *leads, const struct sf_still *still, uint64_t unread)
{
	const struct sf_reader *windows = &still->memory;
	const unsigned fp = sf_arch_host()->fp;
	struct best best = { 0 };

	search(windows->window, windows->window_start, windows->window_size, unread, &best);
	for (uint32_t i = 0; i < windows->n_others; i++)
		search(windows->others[i].bytes, windows->others[i].start, windows->others[i].size, unread, &best);
	if (!best.at && sf_reg_known(&still->regs, fp) && is_near(still->regs.r[fp], unread))
		best.at = SF_LEAD_FP;
	if (!best.at || is_known(leads, best.at))
		return false;
	atomic_store_explicit(&leads->at[leads->n_found++ % SF_MAX_OTHER_STACKS], best.at, memory_order_relaxed);
	return true;
}
