/* SPDX-License-Identifier: Apache-2.0 */
/* Rows of the BPF program as a source of registers that the kernel has saved. */
#include "capture/bpf/source.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/output.h"
#include "capture/bpf/iterator.h"

struct reading {
	struct sf_saved_source source;
	int program;
	int32_t pid;               /* whose threads `rows` are; 0: none yet */
	struct sf_bpf_rows rows, one;
};

/* The states of struct task_struct (include/linux/sched.h). A thread that is being woken is in no run queue yet. */
#define TASK_STOPPED_OR_TRACED 0x0cu
#define TASK_WAKING 0x0200u

static uint8_t state_of(const struct sf_bpf_row *row)
{
	if (row->state == 0 || row->state & TASK_WAKING)
		return SF_STATE_RUNNABLE;
	return row->state & TASK_STOPPED_OR_TRACED ? SF_STATE_STOPPED : SF_STATE_BLOCKED;
}

static const struct sf_bpf_row *row_of(struct reading *reading, int32_t pid, int32_t tid, bool anew)
{
	if (anew)
		return sf_bpf_read(reading->program, 0, tid, &reading->one) ? sf_bpf_find(&reading->one, tid) : NULL;
	if (reading->pid != pid && !sf_bpf_read(reading->program, pid, 0, &reading->rows))
		return NULL;
	reading->pid = pid;
	return sf_bpf_find(&reading->rows, tid);
}

static bool get(void *arg, int32_t pid, int32_t tid, bool anew, struct sf_saved *ret)
{
	const struct sf_bpf_row *row = row_of(arg, pid, tid, anew);
	uint64_t regs[SF_TASK_SAVED];

	_Static_assert(SF_BPF_REGS == SF_TASK_SAVED, "the same registers");
	if (!row || row->pid != pid || row->on_cpu)
		return false;
	for (unsigned i = 0; i < SF_TASK_SAVED; i++)
		regs[i] = row->regs[i];
	*ret = (struct sf_saved){ .pid = pid, .tid = tid, .switches = row->switches,
				   .left_before = row->left_before, .left_after = row->left_after };
	memccpy(ret->name, row->name, 0, sizeof(ret->name) - 1);
	sf_sanitize(ret->name);
	return sf_task_saved(pid, regs, state_of(row), &ret->look, &ret->regs);
}

const struct sf_saved_source *sf_bpf_source_open(struct sf_error *err)
{
	struct reading *ret = malloc(sizeof(*ret));

	if (!ret) {
		sf_fail_memory(err);
		return NULL;
	}
	*ret = (struct reading){ .source = { ret, get }, .program = sf_bpf_load(err) };
	if (ret->program >= 0)
		return &ret->source;
	free(ret);
	return NULL;
}

void sf_bpf_source_close(const struct sf_saved_source *source)
{
	struct reading *reading = source ? source->arg : NULL;

	if (!reading)
		return;
	close(reading->program);
	sf_vec_deinit(&reading->rows.all);
	sf_vec_deinit(&reading->one.all);
	free(reading);
}
