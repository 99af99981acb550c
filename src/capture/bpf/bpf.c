/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The bpf engine: the kernel says what it has saved of threads that are on no CPU (iterator.h), and so no thread is held for its
 * registers. Running threads are sampled by the perf engine. `dump` holds only threads that are on a CPU.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/output.h"
#include "capture/bpf/iterator.h"
#include "capture/dump.h"
#include "capture/engine.h"
#include "capture/ptrace/ptrace.h"

struct reading {
	struct sf_saved_source source;
	int program;               /* below 0: none */
	int32_t pid;               /* whose threads `rows` are; 0: none yet */
	struct sf_bpf_rows rows, one;
};

/* The states of struct task_struct (include/linux/sched.h). What is being woken is in no run queue yet. */
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
	*ret = (struct sf_saved){ .pid = pid, .tid = tid, .switches = row->switches };
	memccpy(ret->name, row->name, 0, sizeof(ret->name) - 1);
	sf_sanitize(ret->name);
	return sf_task_saved(pid, regs, state_of(row), &ret->look, &ret->regs);
}

/* `ret` stays where it is. */
static bool open_reading(struct reading *ret, struct sf_error *err)
{
	*ret = (struct reading){ .source = { ret, get }, .program = sf_bpf_load(err) };
	return ret->program >= 0;
}

static void close_reading(struct reading *reading)
{
	if (reading->program >= 0)
		close(reading->program);
	sf_vec_deinit(&reading->rows.all);
	sf_vec_deinit(&reading->one.all);
}

/* --- fields of the engine --- */

static bool can_load(struct sf_error *err)
{
	const int program = sf_bpf_load(err);

	if (program >= 0)
		close(program);
	return program >= 0;
}

static void examine(sf_finding_fn *report, void *arg)
{
	struct sf_error err = { 0 };
	const bool fine = can_load(&err);

	report(arg, fine, "the kernel says what it has saved of threads that do not run (BPF)", err.text);
}

static bool check(int32_t pid, struct sf_error *err)
{
	return can_load(err) && sf_engine_perf.check(pid, err);
}

static bool try_child(int32_t pid, struct sf_error *err)
{
	return can_load(err) && sf_engine_perf.try_child(pid, err);
}

static void close_capture(struct sf_capture *capture)
{
	struct reading *reading = capture ? capture->saved->arg : NULL;

	sf_engine_perf.close(capture);
	if (reading)
		close_reading(reading);
	free(reading);
}

static bool open_capture(const struct sf_capture_options *options, struct sf_capture **ret, struct sf_error *err)
{
	struct reading *reading = malloc(sizeof(*reading));

	if (!reading)
		return sf_fail_memory(err);
	if (!open_reading(reading, err) || !sf_engine_perf.open(options, ret, err)) {
		close_reading(reading);
		free(reading);
		return false;
	}
	(*ret)->saved = &reading->source;
	return true;
}

static bool run(struct sf_capture *capture, const struct sf_sink *sink, struct sf_error *err)
{
	return sf_engine_perf.run(capture, sink, err);
}

/* The stacks are read by the means of ptrace, and so the same rights are needed. */
static bool check_dump(int32_t pid, struct sf_error *err)
{
	return can_load(err) && sf_ptrace_check_dump(pid, err);
}

static bool dump(int32_t pid, const struct sf_dump_sink *sink, struct sf_dump_cost *cost, struct sf_error *err)
{
	struct reading reading;
	const bool fine = open_reading(&reading, err) && sf_ptrace_dump_saved(pid, &reading.source, sink, cost, err);

	close_reading(&reading);
	return fine;
}

const struct sf_engine sf_engine_bpf = {
	.name = "bpf",
	.summary = "threads that do not run are read by BPF without a hold, and running ones by perf events",
	.from = "outside",
	.yields = SF_YIELDS_STILLS,
	.reach = SF_REACHES_SEVERAL,
	.examine = examine,
	.check = check,
	.try_child = try_child,
	.open = open_capture,
	.run = run,
	.stop = sf_outside_stop,
	.child_status = sf_outside_child_status,
	.close = close_capture,
	.check_dump = check_dump,
	.dump = dump,
	.dumps_unheld = true,
};
