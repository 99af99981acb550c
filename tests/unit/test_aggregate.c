/* SPDX-License-Identifier: Apache-2.0 */
/* Adding a profile up: recursion once, inlined calls, clocks, the merged tree, the sums. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "recording/profile/aggregate.h"
#include "small_recording.h"

struct fixture {
	struct sf_recording *recording;
	uint32_t one, two;
	struct sf_profile *profile;
	struct sf_aggregate *sums;
};

static struct fixture start(void)
{
	struct fixture fixture = { .recording = small_start(small_path("a.sfr")) };

	fixture.one = small_thread(fixture.recording, 101, "one");
	fixture.two = small_thread(fixture.recording, 102, "two");
	return fixture;
}

static void add_up(struct fixture *fixture, enum sf_clock clock)
{
	struct sf_error err;

	small_names(fixture->recording);
	small_finish(fixture->recording);
	fixture->profile = small_load(small_path("a.sfr"));
	assert_true(sf_aggregate_create(fixture->profile, clock, &fixture->sums, &err));
}

static void end(struct fixture *fixture)
{
	sf_aggregate_destroy(fixture->sums);
	sf_profile_destroy(fixture->profile);
}

static const struct sf_function_total *find(const struct fixture *fixture, const char *name)
{
	for (size_t i = 0; i < fixture->sums->n_functions; i++) {
		const struct sf_function_total *total = &fixture->sums->functions[i];

		if (strcmp(sf_aggregate_name(fixture->profile, total->function), name) == 0)
			return total;
	}
	fail_msg("no function %s", name);
	return NULL;
}

static void assert_times(const struct fixture *fixture, const char *name, unsigned self_ms,
			 unsigned total_ms)
{
	const struct sf_function_total *total = find(fixture, name);

	assert_int_equal(total->self_ns, self_ms * (uint64_t)MS);
	assert_int_equal(total->total_ns, total_ms * (uint64_t)MS);
}

static void recursion_counts_once(void **state)
{
	struct fixture fixture = start();
	struct sf_recording *recording = fixture.recording;
	(void)state;

	small_sample(recording, 1, fixture.one,
		     SMALL_STACK(recording, SF_END_ROOT, NULL, 1, 2, 2, 2), SF_STATE_RUNNING, 3, 3);
	small_sample(recording, 2, fixture.one, /* through another function */
		     SMALL_STACK(recording, SF_END_ROOT, NULL, 1, 2, 4, 2, 4, 5), SF_STATE_RUNNING,
		     7, 7);
	small_sample(recording, 3, fixture.one, /* and beside each other */
		     SMALL_STACK(recording, SF_END_ROOT, NULL, 4, 2), SF_STATE_RUNNING, 1, 1);
	add_up(&fixture, SF_CLOCK_CPU);
	assert_int_equal(fixture.sums->total_ns, 11 * MS);
	assert_times(&fixture, "fn1", 0, 10);
	assert_times(&fixture, "fn2", 4, 11);
	assert_times(&fixture, "fn4", 0, 8);
	assert_times(&fixture, "fn5", 7, 7);
	assert_int_equal(find(&fixture, "fn2")->samples, 2);
	assert_int_equal(fixture.sums->n_functions, 4);
	end(&fixture);
}

static void inlined_calls_count_as_calls(void **state)
{
	struct fixture fixture = start();
	(void)state;

	small_sample(fixture.recording, 1, fixture.one, /* 3: fn3 inlined into fn2 */
		     SMALL_STACK(fixture.recording, SF_END_ROOT, NULL, 1, 3, 4), SF_STATE_RUNNING, 3,
		     3);
	small_sample(fixture.recording, 2, fixture.one,
		     SMALL_STACK(fixture.recording, SF_END_ROOT, NULL, 1, 3), SF_STATE_RUNNING, 2, 2);
	add_up(&fixture, SF_CLOCK_CPU);
	assert_times(&fixture, "fn1", 0, 5);
	assert_times(&fixture, "fn2", 0, 5);
	assert_times(&fixture, "fn3", 2, 5);
	assert_times(&fixture, "fn4", 3, 3);
	end(&fixture);
}

static void assert_state(const struct sf_aggregate *sums, uint32_t state, uint64_t wall_ms)
{
	for (size_t i = 0; i < sums->states.n; i++) {
		if (sums->states.items[i].key == state) {
			assert_int_equal(sums->states.items[i].wall_ns, wall_ms * MS);
			return;
		}
	}
	fail_msg("no time in state %u", state);
}

static void clocks_weigh_differently(void **state)
{
	static const struct {
		enum sf_clock clock;
		unsigned total_ms, running_ms, blocked_ms;
	} expected[] = {
		{ SF_CLOCK_CPU, 4, 4, 0 }, { SF_CLOCK_WALL, 55, 5, 50 }, { SF_CLOCK_OFFCPU, 51, 1, 50 },
	};
	(void)state;

	for (size_t i = 0; i < 3; i++) {
		struct fixture fixture = start();
		const struct sf_aggregate *sums;

		small_sample(fixture.recording, 1, fixture.one,
			     SMALL_STACK(fixture.recording, SF_END_ROOT, NULL, 1), SF_STATE_RUNNING,
			     4, 5);
		small_sample(fixture.recording, 2, fixture.two,
			     SMALL_STACK(fixture.recording, SF_END_ROOT, "[futex]", 1),
			     SF_STATE_BLOCKED, 0, 50);
		add_up(&fixture, expected[i].clock);
		sums = fixture.sums;
		assert_int_equal(sums->total_ns, expected[i].total_ms * MS);
		assert_int_equal(sums->cpu_ns, 4 * MS);
		assert_int_equal(sums->wall_ns, 55 * MS);
		assert_int_equal(sums->offcpu_ns, 51 * MS);
		assert_int_equal(sums->tree.nodes[0].total_ns, sums->total_ns);
		assert_times(&fixture, "fn1", expected[i].running_ms, expected[i].total_ms);
		if (expected[i].blocked_ms)
			assert_times(&fixture, "[futex]", expected[i].blocked_ms,
				     expected[i].blocked_ms);
		else
			assert_int_equal(sums->n_functions, 1);

		/* Waits and states are there by any clock. */
		assert_int_equal(sums->waits.n, 1);
		assert_string_equal(sf_aggregate_name(fixture.profile, sums->waits.items[0].key),
				    "[futex]");
		assert_int_equal(sums->waits.items[0].wall_ns, 50 * MS);
		assert_state(sums, SF_STATE_RUNNING, 4);
		assert_state(sums, SF_STATE_RUNNABLE, 1); /* awake, but not on a CPU */
		assert_state(sums, SF_STATE_BLOCKED, 50);
		assert_int_equal(sums->states.n, 3);
		assert_int_equal(sums->threads.n, 2);
		assert_int_equal(sums->threads.items[0].key, expected[i].clock == SF_CLOCK_CPU ? 0 : 1);
		end(&fixture);
	}
}

/* One long sleep, and many short ones that are less together. */
static void states_and_waits_are_sorted_by_elapsed_time(void **state)
{
	struct fixture fixture = start();
	(void)state;

	small_sample(fixture.recording, 1, fixture.one, SMALL_STACK(fixture.recording, SF_END_ROOT, "futex", 1), SF_STATE_BLOCKED, 0, 50);
	small_sample(fixture.recording, 2, fixture.one, SMALL_STACK(fixture.recording, SF_END_ROOT, NULL, 2), SF_STATE_RUNNING, 4, 4);
	for (unsigned i = 3; i < 6; i++)
		small_sample(fixture.recording, i, fixture.two, SMALL_STACK(fixture.recording, SF_END_ROOT, "poll", 1), SF_STATE_BLOCKED, 0, 5);
	add_up(&fixture, SF_CLOCK_CPU);
	assert_int_equal(fixture.sums->waits.n, 2);
	assert_string_equal(sf_aggregate_name(fixture.profile, fixture.sums->waits.items[0].key), "futex");
	assert_int_equal(fixture.sums->states.items[0].key, SF_STATE_BLOCKED);
	end(&fixture);
}

static void tree_merges_by_function(void **state)
{
	struct fixture fixture = start();
	struct sf_recording *recording = fixture.recording;
	const struct sf_tree_node *tree, *main_node, *first, *second;
	(void)state;

	small_sample(recording, 1, fixture.one, SMALL_STACK(recording, SF_END_ROOT, NULL, 1, 4),
		     SF_STATE_RUNNING, 1, 1);
	/* As a caller fn4 has another address than as the innermost frame. */
	small_sample(recording, 2, fixture.two, SMALL_STACK(recording, SF_END_ROOT, NULL, 1, 4, 5),
		     SF_STATE_RUNNING, 2, 2);
	small_sample(recording, 3, fixture.two, SMALL_STACK(recording, SF_END_ROOT, NULL, 1, 6),
		     SF_STATE_RUNNING, 9, 9);
	add_up(&fixture, SF_CLOCK_CPU);
	tree = fixture.sums->tree.nodes;
	assert_int_equal(fixture.sums->tree.n, 5);
	main_node = &tree[tree[0].first_child];
	assert_int_equal(main_node->next, 0);
	assert_int_equal(main_node->total_ns, 12 * MS);
	assert_int_equal(main_node->self_ns, 0);
	first = &tree[main_node->first_child];
	assert_string_equal(sf_aggregate_name(fixture.profile, first->function), "fn6");
	assert_int_equal(first->total_ns, 9 * MS);
	second = &tree[first->next];
	assert_string_equal(sf_aggregate_name(fixture.profile, second->function), "fn4");
	assert_int_equal(second->total_ns, 3 * MS);
	assert_int_equal(second->self_ns, 1 * MS);
	assert_int_equal(second->next, 0);
	end(&fixture);
}

static void samples_without_a_stack_are_not_lost(void **state)
{
	struct fixture fixture = start();
	(void)state;

	small_sample(fixture.recording, 1, fixture.one, 0, SF_STATE_RUNNING, 5, 5);
	add_up(&fixture, SF_CLOCK_CPU);
	assert_times(&fixture, "[no stack]", 5, 5);
	assert_int_equal(fixture.sums->tree.n, 2);
	assert_int_equal(fixture.sums->tree.nodes[1].total_ns, 5 * MS);
	end(&fixture);
}

static void losses_and_ends_are_counted(void **state)
{
	struct fixture fixture = start();
	struct sf_error err;
	(void)state;

	for (unsigned i = 0; i < 10; i++)
		small_sample(fixture.recording, i, fixture.one,
			     SMALL_STACK(fixture.recording, SF_END_ROOT, NULL, 1), SF_STATE_RUNNING,
			     1, 1);
	sf_recording_loss(fixture.recording, fixture.one, SF_LOSS_LATE,
			  &(struct sf_lost){ .ticks = 2, .cpu_ns = MS, .wall_ns = MS });
	sf_recording_loss(fixture.recording, fixture.two, SF_LOSS_LATE,
			  &(struct sf_lost){ .ticks = 3, .cpu_ns = MS, .wall_ns = MS });
	sf_recording_loss(fixture.recording, 0, SF_LOSS_UNSEEN, &(struct sf_lost){ .ticks = 1, .cpu_ns = MS, .wall_ns = MS });
	assert_true(sf_recording_thread_end(fixture.recording, fixture.one, SMALL_START_NS + MS,
					    12 * MS, &err));
	sf_recording_hold(fixture.recording, 4000);
	add_up(&fixture, SF_CLOCK_CPU);
	assert_int_equal(fixture.sums->sample_ticks, 10);
	assert_int_equal(fixture.sums->ends[SF_END_ROOT], 10);
	assert_int_equal(fixture.sums->lost.ticks, 6);
	assert_int_equal(fixture.sums->lost_by[SF_LOSS_LATE].ticks, 5);
	assert_int_equal(fixture.sums->lost_by[SF_LOSS_LATE].cpu_ns, 2 * MS);
	/* The thread's, and that of threads which nobody saw. */
	assert_int_equal(fixture.sums->cpu_counted_ns, (12 + 1) * MS);
	assert_int_equal(fixture.sums->cpu_counted_ns,
			 fixture.sums->cpu_ns + fixture.sums->lost.cpu_ns);
	assert_int_equal(fixture.sums->holds, 1);
	assert_in_range(fixture.sums->hold_max_ns, 4000, 4500);
	end(&fixture);
}

/* Two processes of one name are two, also if the second has the pid of the first. */
static void a_pid_that_is_used_again_counts_twice(void **state)
{
	struct fixture fixture = start();
	const uint32_t stack = SMALL_STACK(fixture.recording, SF_END_ROOT, NULL, 1, 2);
	struct sf_error err;
	(void)state;

	small_sample(fixture.recording, 1, fixture.one, stack, SF_STATE_RUNNING, 1, 1);
	small_sample(fixture.recording, 2, fixture.two, stack, SF_STATE_RUNNING, 1, 1);
	assert_true(sf_recording_process_ended(fixture.recording, 100, &err));
	assert_true(sf_recording_process_met(fixture.recording, 100, 0, &err));
	assert_true(sf_recording_process(fixture.recording, 100, 1, "work", "work", SMALL_START_NS, &err));
	small_sample(fixture.recording, 3, small_thread(fixture.recording, 101, "again"), stack, SF_STATE_RUNNING, 1, 1);
	add_up(&fixture, SF_CLOCK_CPU);
	assert_int_equal(fixture.sums->n_processes, 1);
	assert_int_equal(fixture.sums->processes[0].n_processes, 2);
	assert_int_equal(fixture.sums->processes[0].n_threads, 3);
	end(&fixture);
}

static void nothing_adds_up_to_nothing(void **state)
{
	struct fixture fixture = start();
	(void)state;

	add_up(&fixture, SF_CLOCK_WALL);
	assert_int_equal(fixture.sums->total_ns, 0);
	assert_int_equal(fixture.sums->n_functions, 0);
	assert_int_equal(fixture.sums->tree.n, 1);
	assert_int_equal(fixture.sums->threads.n, 0);
	end(&fixture);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, small_folder_make, small_folder_remove)
	const struct CMUnitTest tests[] = {
		TEST(recursion_counts_once),
		TEST(inlined_calls_count_as_calls),
		TEST(clocks_weigh_differently),
		TEST(states_and_waits_are_sorted_by_elapsed_time),
		TEST(tree_merges_by_function),
		TEST(samples_without_a_stack_are_not_lost),
		TEST(losses_and_ends_are_counted),
		TEST(a_pid_that_is_used_again_counts_twice),
		TEST(nothing_adds_up_to_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
