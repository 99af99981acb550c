/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The bpf engine: the kernel says what it has saved of threads that are on no CPU (source.h), and so no thread is held
 * for its registers. `record` is that of the perf engine, which does the same where it can; this one can. `dump` holds
 * only threads that are on a CPU.
 */
#include <unistd.h>

#include "capture/bpf/source.h"
#include "capture/dump.h"
#include "capture/perf/allowed.h"
#include "capture/perf/perf.h"

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

static bool open_capture(const struct sf_capture_options *options, struct sf_capture **ret, struct sf_error *err)
{
	return can_load(err) && sf_engine_perf.open(options, ret, err);
}

/* The stacks are read by the means of ptrace, and so the same rights are needed. */
static bool check_dump(int32_t pid, struct sf_error *err)
{
	return can_load(err) && sf_ptrace_check_dump(pid, err);
}

static bool dump(int32_t pid, const struct sf_dump_sink *sink, struct sf_dump_cost *cost, struct sf_error *err)
{
	const struct sf_saved_source *source = sf_bpf_source_open(err);
	const bool fine = source && sf_ptrace_dump_saved(pid, source, sink, cost, err);

	sf_bpf_source_close(source);
	return fine;
}

const struct sf_engine sf_engine_bpf = {
	.name = "bpf",
	.summary = "threads that do not run are read by BPF without a hold, and running ones by perf events",
	.from = "outside",
	.yields = SF_YIELDS_STILLS,
	.reach = SF_REACHES_ALL,
	.options = sf_perf_options,
	.examine = examine,
	.check = check,
	.is_limited = sf_perf_is_limited,
	.try_child = try_child,
	.open = open_capture,
	.run = sf_perf_run,
	.stop = sf_outside_stop,
	.child_status = sf_outside_child_status,
	.close = sf_perf_close,
	.check_dump = check_dump,
	.dump = dump,
	.dumps_unheld = true,
};
