/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A virtual machine's facts on a thread go with a stack only if the thread has not run in between. The functions
 * below the walker are replaced (--wrap): a machine that always has the thread, a walk that gets further with its facts,
 * and the thread's switch count.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "os/task.h"
#include "session/walker.h"

#define HANDLE 0x1234
#define PID 77
#define PARENT 10

static struct sf_runtime_ops ops;
static const struct sf_runtime runtime = { .ops = &ops };

static struct sf_walker walker;
static unsigned n_refreshes, n_walks, n_walks_known, walks_before_count, n_counts;
static uint64_t switches_now;

enum sf_end __wrap_sf_walk(const struct sf_still *still, struct sf_trace *trace);
bool __wrap_sf_process_refresh_stale(struct sf_process *process, struct sf_images *images);
void __wrap_sf_process_refresh_due(struct sf_process *process, struct sf_images *images, bool has_records);
void __wrap_sf_process_runtimes_look(struct sf_process_runtimes *runtimes, struct sf_process *process,
				     struct sf_images *images);
bool __wrap_sf_process_runtimes_handles(struct sf_process_runtimes *runtimes, int32_t pid, int32_t tid,
					uint64_t ret[SF_MAX_RUNTIMES]);
uint64_t __wrap_sf_task_switches(int32_t pid, int32_t tid);
bool __wrap_sf_process_is_over(int32_t pid);

static bool is_over;

enum sf_end __wrap_sf_walk(const struct sf_still *still, struct sf_trace *trace)
{
	n_walks++;
	n_walks_known += still->handles[0] != 0;
	trace->n_frames = still->handles[0] ? 3 : 1;
	trace->frames[trace->n_frames - 1] = (struct sf_frame){ .pc = 1, .image = 1 };
	trace->end = still->handles[0] ? SF_END_ROOT : SF_END_REGISTER;
	return trace->end;
}

bool __wrap_sf_process_refresh_stale(struct sf_process *process, struct sf_images *images)
{
	(void)images;
	n_refreshes++;
	process->is_outdated = false;
	if (!process->map)
		process->map = calloc(1, sizeof(*process->map) + sizeof(process->map->regions[0]));
	return false;
}

void __wrap_sf_process_refresh_due(struct sf_process *process, struct sf_images *images, bool has_records)
{
	(void)has_records;
	__wrap_sf_process_refresh_stale(process, images);
}

void __wrap_sf_process_runtimes_look(struct sf_process_runtimes *runtimes, struct sf_process *process,
				     struct sf_images *images)
{
	(void)process, (void)images;
	runtimes->all.attached[0] = &runtime;
}

bool __wrap_sf_process_runtimes_handles(struct sf_process_runtimes *runtimes, int32_t pid, int32_t tid,
					uint64_t ret[SF_MAX_RUNTIMES])
{
	(void)runtimes;
	assert_int_equal(pid, PID);
	assert_int_equal(tid, PID + 1);
	ret[0] = HANDLE;
	return true;
}

uint64_t __wrap_sf_task_switches(int32_t pid, int32_t tid)
{
	assert_int_equal(pid, PID);
	assert_int_equal(tid, PID + 1);
	n_counts++;
	walks_before_count = n_walks_known;
	return switches_now;
}

bool __wrap_sf_process_is_over(int32_t pid)
{
	assert_true(pid == PID || pid == PARENT);
	return is_over;
}

static int make(void **state)
{
	struct sf_error err = { 0 };

	(void)state;
	n_refreshes = n_walks = n_walks_known = walks_before_count = n_counts = 0;
	is_over = false;
	ops.resumes_by_stack = false;
	return sf_walker_init(&walker, 16, &err) ? 0 : -1;
}

static int destroy(void **state)
{
	(void)state;
	sf_walker_deinit(&walker);
	return 0;
}

/* A still of a thread that had been put on a CPU `switches` times. */
static struct sf_still still_of(uint32_t flags, uint64_t switches)
{
	return (struct sf_still){ .pid = PID, .tid = PID + 1, .flags = flags, .switches = switches,
				  .regs = { .pc = 1 } };
}

static void assert_known(struct sf_still *still)
{
	assert_int_equal(sf_walker_walk(&walker, still, NULL), SF_END_ROOT);
	assert_int_equal(walker.trace.n_frames, 3);
	assert_int_equal(still->handles[0], HANDLE);
	assert_int_equal(n_walks, 2);
	assert_true(walker.lacks_registers);
}

static void assert_unknown(struct sf_still *still)
{
	assert_int_equal(sf_walker_walk(&walker, still, NULL), SF_END_REGISTER);
	assert_int_equal(walker.trace.n_frames, 1);
	assert_int_equal(still->handles[0], 0);
	assert_int_equal(n_walks, 3);
	assert_true(walker.lacks_registers);
}

/* That it slept on is looked at behind the walk, which reads what the machine knows. */
static void a_thread_that_slept_on_is_walked_as_known(void **state)
{
	struct sf_still still = still_of(SF_STILL_UNHELD, 5);

	(void)state;
	switches_now = 5;
	assert_known(&still);
	assert_int_equal(n_counts, 1);
	assert_int_equal(walks_before_count, 1);
}

static void one_that_ran_in_between_is_not(void **state)
{
	struct sf_still still = still_of(SF_STILL_UNHELD, 5);

	(void)state;
	switches_now = 6;
	assert_unknown(&still);
}

/* A runtime that takes all from the stack needs no data of the same moment. */
static void one_that_ran_is_resumed_by_its_stack(void **state)
{
	struct sf_still still = still_of(SF_STILL_UNHELD, 5);

	(void)state;
	ops.resumes_by_stack = true;
	switches_now = 6;
	assert_known(&still);
}

static void nor_one_of_which_nobody_knows(void **state)
{
	struct sf_still still = still_of(SF_STILL_UNHELD, 0);

	(void)state;
	switches_now = 0;   /* the file could not be read, then and now */
	assert_unknown(&still);
}

static void of_a_held_one_it_is_not_asked(void **state)
{
	struct sf_still still = still_of(0, 5);

	(void)state;
	switches_now = 6;
	assert_known(&still);
	assert_int_equal(n_counts, 0);
}

/* What is left of its memory is older than the stack. */
static void nor_one_of_a_process_that_has_ended(void **state)
{
	struct sf_still still = still_of(0, 5);

	(void)state;
	is_over = true;
	assert_int_equal(sf_walker_walk(&walker, &still, NULL), SF_END_REGISTER);
	assert_int_equal(still.handles[0], 0);
	assert_int_equal(n_walks, 1);
	assert_true(walker.lacks_registers);
}

/* The kernel's frames are on top of the thread's own, in one module, and the innermost one is where it stood. */
static void kernel_frames_are_on_top(void **state)
{
	const uint64_t kernel[] = { 0xffffffff81000010, 0xffffffff81000020 };
	struct sf_still still = still_of(0, 0);

	(void)state;
	still.kernel = kernel;
	still.n_kernel = 2;
	sf_walker_walk(&walker, &still, NULL);
	assert_int_equal(walker.trace.n_frames, 5);
	for (unsigned i = 0; i < 2; i++) {
		assert_int_equal(walker.trace.frames[i].kind, SF_KIND_KERNEL);
		assert_int_equal(walker.trace.frames[i].address, kernel[i]);
		assert_int_equal(walker.trace.frames[i].flags, i == 0 ? SF_FRAME_EXACT : 0);
		assert_true(sf_images_get(walker.images, walker.trace.frames[i].image)->is_kernel);
	}
	assert_int_equal(walker.trace.frames[2].kind, SF_KIND_NATIVE);
	assert_int_equal(walker.trace.end, SF_END_ROOT);
}

/* Its registers were read, and are 0. Where they could not be read, nothing is known. */
static void a_thread_that_stays_in_the_kernel(void **state)
{
	struct sf_still still = still_of(SF_STILL_COPY | SF_STILL_UNHELD, 5);

	(void)state;
	still.regs.pc = 0;
	assert_int_equal(sf_walker_walk(&walker, &still, NULL), SF_END_ROOT);
	assert_int_equal(walker.trace.n_frames, 0);
	still.flags = SF_STILL_UNHELD;
	assert_int_equal(sf_walker_walk(&walker, &still, NULL), SF_END_EMPTY);
	still.flags = SF_STILL_COPY;
	sf_reg_set(&still.regs, sf_arch_host()->sp, 0x1000);
	assert_int_equal(sf_walker_walk(&walker, &still, NULL), SF_END_EMPTY);
}

/* More than the trace has room for: the thread's outermost frames give way, and the end says so. */
static void kernel_frames_have_room(void **state)
{
	uint64_t kernel[40];
	struct sf_still still = still_of(0, 0);

	(void)state;
	for (unsigned i = 0; i < 40; i++)
		kernel[i] = i + 1;
	still.kernel = kernel;
	still.n_kernel = 14;
	sf_walker_walk(&walker, &still, NULL);
	assert_int_equal(walker.trace.n_frames, 16);
	assert_int_equal(walker.trace.end, SF_END_DEPTH);
	assert_int_equal(walker.trace.frames[13].address, 14);
	assert_int_equal(walker.trace.frames[14].kind, SF_KIND_NATIVE);
	still.n_kernel = 40;
	sf_walker_walk(&walker, &still, NULL);
	assert_int_equal(walker.trace.n_frames, 16);
	assert_int_equal(walker.trace.frames[15].address, 16);
}

/* Ten thousand processes, one after the other, take the room of one; what was told of one is not another's. */
static void ended_processes_are_given_back(void **state)
{
	const struct sf_mapping mapping = { .start = 0x1000, .end = 0x2000, .executable = true, .path = "/nowhere" };

	(void)state;
	for (int32_t pid = 1000000; pid < 1010000; pid++) {
		assert_true(sf_walker_add_mapping(&walker, pid, &mapping, NULL));
		assert_true(sf_walker_begin(&walker, pid, NULL));
		assert_int_equal(walker.processes.items[walker.processes.n - 1].process.recorded.n, 1); /* kept: it was told before */
		sf_walker_end(&walker, pid);
		sf_walker_end(&walker, pid);
	}
	assert_int_equal(walker.processes.n, 1);
	assert_int_equal(walker.processes.items[0].process.recorded.n, 0);
}

/* A process whose map was read, with one region. */
static struct sf_process *known_process(int32_t pid, uint64_t start)
{
	struct sf_process *process;

	assert_true(sf_walker_begin(&walker, pid, NULL));
	process = &walker.processes.items[walker.processes.n - 1].process;
	assert_false(sf_process_refresh_stale(process, NULL));
	process->map->n_regions = 1;
	process->map->regions[0].start = start;
	return process;
}

/* What the parent has mapped since its map was made, as by an exec, is in the child's map. */
static void a_child_has_the_code_that_its_parent_has_now(void **state)
{
	const struct sf_mapping mapping = { .start = 0x1000, .end = 0x2000, .executable = true, .path = "/nowhere" };

	(void)state;
	known_process(10, 0x8000);
	assert_true(sf_walker_fork(&walker, 11, PARENT, NULL));
	assert_int_equal(n_refreshes, 1);
	assert_int_equal(walker.processes.items[1].process.map->regions[0].start, 0x8000);
	assert_true(sf_walker_add_mapping(&walker, 10, &mapping, NULL));
	walker.processes.items[0].process.map->regions[0].start = 0x9000;
	assert_true(sf_walker_fork(&walker, 11, PARENT, NULL)); /* again: the copy of before was made too early */
	assert_int_equal(n_refreshes, 2);
	assert_int_equal(walker.processes.items[1].process.map->regions[0].start, 0x9000);
}

/* A map that was read from the system is right, and has what no record tells. */
static void a_child_whose_map_was_read_keeps_it(void **state)
{
	(void)state;
	known_process(10, 0x8000);
	known_process(11, 0x5000);
	assert_true(sf_walker_fork(&walker, 11, PARENT, NULL));
	assert_int_equal(walker.processes.items[1].process.map->regions[0].start, 0x5000);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, make, destroy)
	const struct CMUnitTest tests[] = {
		T(kernel_frames_are_on_top),
		T(a_thread_that_stays_in_the_kernel),
		T(a_child_has_the_code_that_its_parent_has_now), T(a_child_whose_map_was_read_keeps_it),
		T(ended_processes_are_given_back), T(kernel_frames_have_room),
		T(a_thread_that_slept_on_is_walked_as_known),
		T(one_that_ran_in_between_is_not),
		T(one_that_ran_is_resumed_by_its_stack),
		T(nor_one_of_which_nobody_knows),
		T(of_a_held_one_it_is_not_asked),
		T(nor_one_of_a_process_that_has_ended),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
