/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The BPF program. The kernel calls look() for each thread that a task iterator visits, and look() writes a row (row.h).
 *
 * It reads fields of struct task_struct, and the registers that the thread saved when it entered the kernel. It reads
 * no memory of a process, changes nothing, and waits for nothing.
 *
 * The structs below have only the fields that are used. The kernel finds where they lie when it loads the program, from
 * its description of its own types (BTF).
 */
#include <linux/bpf.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>

#include "capture/bpf/row.h"

#define KERNEL_THREAD 0x00200000 /* PF_KTHREAD */

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct upid {
	int nr;
};

struct pid {
	unsigned int level;
	struct upid numbers[1];
};

struct sched_info {
	unsigned long pcount;
};

struct sched_entity {
	unsigned char sched_delayed; /* from Linux 6.12 on */
};

struct task_struct {
	unsigned int __state;
	unsigned int flags;
	int exit_state;
	int on_cpu;
	int on_rq;
	struct sched_entity se;
	struct sched_info sched_info;
	unsigned long nvcsw;
	unsigned long nivcsw;
	struct task_struct *group_leader;
	struct pid *thread_pid;
	char comm[16];
};

struct seq_file;

struct bpf_iter_meta {
	struct seq_file *seq;
};

struct bpf_iter__task {
	struct bpf_iter_meta *meta;
	struct task_struct *task;
};

#pragma clang attribute pop

/* A thread's id in the pid namespace at this depth; 0: it has none there. */
static int id_at(struct task_struct *task, unsigned int level)
{
	struct pid *pid = BPF_CORE_READ(task, thread_pid);
	struct upid upid = { 0 };
	const char *number;

	if (!pid || BPF_CORE_READ(pid, level) < level)
		return 0;
	number = (const char *)pid + bpf_core_field_offset(pid->numbers) + (unsigned long)level * bpf_core_type_size(struct upid);
	bpf_core_read(&upid.nr, sizeof(upid.nr), number + bpf_core_field_offset(upid.nr));
	return upid.nr;
}

static unsigned int own_level(void)
{
	struct task_struct *self = (struct task_struct *)bpf_get_current_task_btf();

	return BPF_CORE_READ(self, thread_pid, level);
}

static unsigned long times_left(const struct task_struct *task)
{
	return task->nvcsw + task->nivcsw;
}

/*
 * Whether it is in a run queue, but for one that goes to sleep and is kept there for a while (kernel/sched/fair.c:
 * set_delayed()).
 */
static int is_queued(const struct task_struct *task)
{
	if (!task->on_rq)
		return 0;
	return !(bpf_core_field_exists(task->se.sched_delayed) && task->se.sched_delayed);
}

/*
 * The order of the loads is the proof, and x86-64 keeps it. The kernel counts a switch to a thread a moment before the
 * thread is on the CPU (kernel/sched/core.c: prepare_task_switch()), so a thread that is about to run has its new
 * count, and is on none.
 *
 * - A thread that is in no run queue is put into one, and is counted, before it runs. So if its switch count, which was read before
 *   that, is the same later, it has not run since. Its state does not show that: one that the kernel displaces on its way to sleep
 *   has its new state, stays in the queue, and comes back without being counted (kernel/sched/stats.h: sched_info_depart(),
 *   sched_info_arrive()), also when it was woken meanwhile.
 * - Of one that waits for a CPU it is shown by how often it has left one (struct sf_saved): that rises before it is on
 *   none again.
 */
static void fill(struct task_struct *task, struct sf_bpf_row *row)
{
	row->left_before = times_left(task);
	barrier();
	row->switches = task->sched_info.pcount;
	barrier();
	row->on_cpu = task->on_cpu != 0;
	barrier();
	row->state = task->__state;
	barrier();
	row->queued = is_queued(task);
	barrier();
	row->on_cpu |= task->on_cpu != 0;
	barrier();
	row->left_after = times_left(task);
	bpf_probe_read_kernel(row->regs, sizeof(row->regs), (const void *)bpf_task_pt_regs(task));
	bpf_probe_read_kernel(row->name, sizeof(row->name), task->comm);
}

SEC("iter/task")
int look(struct bpf_iter__task *ctx)
{
	struct task_struct *task = ctx->task;
	struct sf_bpf_row row = { 0 };
	unsigned int level;

	if (!task || task->flags & KERNEL_THREAD || task->exit_state)
		return 0;
	level = own_level();
	row.pid = id_at(task->group_leader, level);
	row.tid = id_at(task, level);
	if (!row.pid || !row.tid)
		return 0;
	fill(task, &row);
	bpf_seq_write(ctx->meta->seq, &row, sizeof(row));
	return 0;
}

char licence[] SEC("license") = "Dual BSD/GPL";
