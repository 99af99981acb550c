/* SPDX-License-Identifier: Apache-2.0 */
/* Finds where stacks end, and fills the holes in them. */
#include "capture/perf/holes.h"

#include "capture/perf/perf.h"
#include "frozen/raw.h"
#include "os/pages.h"

#define SHARE 100                /* looks take this part of a CPU ... */
#define CREDIT_NS 10000000       /* ... or so much at once: at the start of a program, when there is little to look at */
#define MAX_STACKS 256           /* of a look */

static bool is_known(const struct sf_thread_stack *stack)
{
	return stack->sp >= stack->start && stack->sp < stack->end;
}

bool sf_perf_holes_note(struct sf_perf *perf, struct sf_thread *thread, const struct sf_perf_record *record)
{
	struct sf_thread_stack *stack = &thread->stack;
	struct sf_regs regs;

	if (!record->stack_size || record->stack_size >= record->stack_room)
		return false;
	sf_perf_load_regs(record->regs, &regs);
	stack->sp = regs.r[sf_arch_host()->sp];
	stack->has_hole = is_known(stack) && stack->is_plain && stack->sp + record->stack_size < stack->end;
	if (is_known(stack) && !stack->has_hole)
		return false;
	perf->holes.pid = record->pid;
	return true;
}

/* Whether a look may help: its stack is not known, or has a hole. */
static bool is_wanted(const struct sf_thread *thread, int32_t pid)
{
	return thread->task.pid == pid && thread->stack.sp && (thread->stack.has_hole || !is_known(&thread->stack));
}

/* The end of the stack, and what the copy of the last record did not reach. */
static void fill(int32_t tid, const struct sf_thread_stack *stack)
{
	const uint64_t last = stack->end - stack->start > SF_PERF_MAX_STACK ? stack->end - SF_PERF_MAX_STACK : stack->start;

	sf_pages_fill(tid, last, stack->end);
	if (stack->sp < last)
		sf_pages_fill(tid, stack->sp, stack->sp + SF_PERF_MAX_STACK < last ? stack->sp + SF_PERF_MAX_STACK : last);
}

static void take(struct sf_thread *thread, const struct sf_pages_stack *found)
{
	struct sf_thread_stack *stack = &thread->stack;

	stack->start = found->start;
	stack->end = found->end;
	stack->is_plain = found->is_plain;
	if (stack->is_plain)
		fill(thread->task.tid, stack);
	stack->has_hole = false;
}

static void look(struct sf_perf *perf, int32_t pid)
{
	const struct sf_watch *watch = &perf->base.watch;
	struct sf_pages_stack stacks[MAX_STACKS];
	struct sf_thread *threads[MAX_STACKS];
	size_t n = 0;

	for (size_t i = 0; i < watch->threads.n && n < MAX_STACKS; i++) {
		struct sf_thread *thread = watch->threads.items[i];

		if (!is_wanted(thread, pid))
			continue;
		threads[n] = thread;
		stacks[n++].sp = thread->stack.sp;
	}
	if (n)
		sf_pages_find_stacks(threads[0]->task.tid, stacks, n);
	for (size_t i = 0; i < n; i++)
		take(threads[i], &stacks[i]);
}

void sf_perf_holes_fill(struct sf_perf *perf, uint64_t now_ns)
{
	struct sf_perf_holes *holes = &perf->holes;
	const uint64_t start_ns = sf_raw_thread_cpu_ns();

	if (!holes->pid)
		return;
	holes->credit_ns += (int64_t)((now_ns - holes->paid_ns) / SHARE);
	if (holes->credit_ns > CREDIT_NS)
		holes->credit_ns = CREDIT_NS;
	holes->paid_ns = now_ns;
	if (holes->credit_ns <= 0)
		return;
	look(perf, holes->pid);
	holes->pid = 0;
	holes->credit_ns -= (int64_t)(sf_raw_thread_cpu_ns() - start_ns);
}
