/* SPDX-License-Identifier: Apache-2.0 */
#include "fake_profile.h"

enum {
	EMPTY, MAIN, COMPUTE, MANGLED, INNER, FUTEX, EVIL, SCRIPT, SOURCE, LIBRARY, PROGRAM,
	LIBRARY_ID, PROGRAM_ID, WORKER, IO, TRACE, TRACE_ONE, TRACE_TWO, N_STRINGS
};

static char *strings[N_STRINGS] = {
	[EMPTY] = (char *)"",
	[MAIN] = (char *)"main",
	[COMPUTE] = (char *)"compute(int)",
	[MANGLED] = (char *)"_Z7computei",
	[INNER] = (char *)"inner",
	[FUTEX] = (char *)"[futex]",
	[EVIL] = (char *)"evil;name\nx",
	[SCRIPT] = (char *)FAKE_SCRIPT,
	[SOURCE] = (char *)"/src/app.c",
	[LIBRARY] = (char *)"/lib/libevil.so",
	[PROGRAM] = (char *)"/bin/app",
	[LIBRARY_ID] = (char *)"99",
	[PROGRAM_ID] = (char *)FAKE_MAIN_BUILD_ID,
	[WORKER] = (char *)"worker",
	[IO] = (char *)"io",
	[TRACE] = (char *)"trace",
	[TRACE_ONE] = (char *)"4bf9",
	[TRACE_TWO] = (char *)"0001",
};

static struct sf_profile_module modules[] = {
	{ LIBRARY, LIBRARY_ID },
	{ PROGRAM, PROGRAM_ID },
};

static struct sf_profile_function functions[] = {
	{ 0 },
	{ .name = MAIN, .linkage = MAIN, .file = SOURCE, .module = 2 },
	{ .name = COMPUTE, .linkage = MANGLED, .file = SOURCE, .module = 2 },
	{ .name = INNER, .linkage = INNER, .file = SOURCE, .module = 2 },
	{ .name = FUTEX, .linkage = FUTEX, .kind = SF_KIND_WAIT },
	{ .name = EVIL, .linkage = EVIL, .module = 1 },
	{ .name = SCRIPT, .linkage = SCRIPT, .module = 1 },
};

static struct sf_profile_frame frames[] = {
	{ 0 },
	{ .function = 1, .line = 10, .address = 0x1010 },
	{ .function = 2, .line = 20, .address = 0x1100 },
	{ .function = 3, .line = 30, .address = 0x1100, .inlined = true,
	  .approximate = true },
	{ .function = 4 },
	{ .function = 5, .address = 0x1000, .via = SF_VIA_GUESS }, /* at the start of a page */
	{ .function = 6, .address = 0x500 },
	{ .function = 1, .line = 11, .address = 0x1020 },
};

static struct sf_profile_node nodes[] = {
	{ 0, 0 }, { 0, 1 }, { 1, 2 }, { 2, 3 }, { 0, 7 }, { 4, 4 }, { 1, 5 }, { 6, 6 },
};

static struct sf_profile_thread threads[] = {
	{ .process = 1, .pid = 100, .tid = 101, .name = WORKER, .process_name = PROGRAM,
	  .cpu_counted_ns = 15500000 },
	{ .process = 1, .pid = 100, .tid = 102, .name = IO, .process_name = PROGRAM },
	{ .process = 1, .pid = 100, .tid = 103, .name = WORKER, .process_name = PROGRAM,
	  .cpu_counted_ns = 5000000 },
};

static struct sf_profile_label labels[] = { { TRACE, TRACE_ONE }, { TRACE, TRACE_TWO } };

static struct sf_profile_sample samples[] = {
	{ .thread = 0, .node = 3, .cpu_ns = 5000000, .wall_ns = 5000000, .ticks = 1 },
	{ .thread = 0, .node = 3, .cpu_ns = 10000000, .wall_ns = 10000000, .ticks = 2 },
	{ .thread = 1, .node = 5, .wall_ns = 50000000, .ticks = 1, .state = SF_STATE_BLOCKED },
	{ .thread = 2, .node = 7, .cpu_ns = 2000000, .wall_ns = 2000000, .ticks = 0,
	  .state = SF_STATE_RUNNABLE, .label = 2 },
	{ .thread = 2, .node = 7, .cpu_ns = 3000000, .wall_ns = 5000000, .ticks = 1,
	  .state = SF_STATE_RUNNABLE, .label = 1, .second_label = 2 },
	{ .thread = 0, .node = 0, .wall_ns = 1000000, .ticks = 1, .state = SF_STATE_BLOCKED },
	{ .thread = 1, .node = 5, .ticks = 1, .state = SF_STATE_BLOCKED },
};

static struct sf_profile_loss losses[] = {
	{ .thread = 0, .cause = SF_LOSS_LATE, .ticks = 3 },
	{ .thread = UINT32_MAX, .cause = SF_LOSS_UNSEEN, .ticks = 2 },
};

#define TABLE(table) .table = table, .n_##table = sizeof(table) / sizeof(*table)

static const struct sf_profile profile = {
	.command = (char *)"app --fast",
	.engine = (char *)"ptrace",
	.host = (char *)"host",
	.version = (char *)"0",
	.start_unix_ns = 1700000000000000000u,
	.duration_ns = 100000000,
	.rate_mhz = 200000,
	.blocked_rate_mhz = 20000,
	.complete = true,
	TABLE(strings),
	TABLE(modules),
	TABLE(functions),
	TABLE(frames),
	TABLE(nodes),
	TABLE(threads),
	TABLE(labels),
	TABLE(samples),
	TABLE(losses),
};

const struct sf_profile *fake_profile(void)
{
	return &profile;
}
