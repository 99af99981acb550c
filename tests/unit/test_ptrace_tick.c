/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ticks of the ptrace engine over threads that sleep: which are looked at, when, and what sleep their time belongs to. The
 * kernel's answers, samples and the relay are replaced (--wrap).
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "capture/ptrace/ptrace.h"
#include "capture/ptrace/relay.h"

#define MS UINT64_C(1000000)
#define PERIOD MS
#define BLOCKED_PERIOD (50 * MS)
#define N 3

/* What the kernel has of a thread. */
static struct { uint64_t cpu_ns, switches, place; bool runs, has_ended; } fakes[N];
static uint64_t process_cpu_ns;
static struct sf_thread threads[N];
static struct sf_thread *items[N];
static struct sf_watched_process process;
static struct sf_capture_options options;
static struct sf_capture capture;
static uint64_t now_ns;
static unsigned n_looks, n_clocks, n_samples[N];
static uint64_t asleep_ns[N][3]; /* that samples stand for, by the place of the sleep */
static uint64_t sampled_place[N];
static bool is_unknown;

bool __wrap_sf_task_run(const struct sf_task *task, struct sf_task_run *ret);
bool __wrap_sf_task_look(const struct sf_task *task, struct sf_task_look *ret);
bool __wrap_sf_process_cpu(int32_t pid, uint64_t *ret);
bool __wrap_sf_ptrace_answer(struct sf_capture *of, bool wait);
void __wrap_sf_ptrace_hold(struct sf_capture *of, struct sf_thread *thread, uint64_t at_ns);
bool __wrap_sf_ptrace_sleep_is_known(const struct sf_capture *of, const struct sf_thread *thread);
void __wrap_sf_ptrace_sample_asleep(struct sf_capture *of, struct sf_thread *thread, uint64_t at_ns);
void __wrap_sf_relay_again(struct sf_relay *relay, const struct sf_thread *thread, uint64_t time_ns, const struct sf_weight *weight);

bool __wrap_sf_task_run(const struct sf_task *task, struct sf_task_run *ret)
{
	n_looks++;
	*ret = (struct sf_task_run){ .cpu_ns = fakes[task->tid].cpu_ns, .switches = fakes[task->tid].switches };
	return !fakes[task->tid].has_ended;
}

bool __wrap_sf_task_look(const struct sf_task *task, struct sf_task_look *ret)
{
	*ret = (struct sf_task_look){ .state = fakes[task->tid].runs ? SF_STATE_RUNNING : SF_STATE_BLOCKED, .placed = true,
				      .sp = fakes[task->tid].place };
	return !fakes[task->tid].has_ended;
}

bool __wrap_sf_process_cpu(int32_t pid, uint64_t *ret)
{
	(void)pid;
	n_clocks++;
	*ret = process_cpu_ns;
	return true;
}

bool __wrap_sf_ptrace_answer(struct sf_capture *of, bool wait)
{
	(void)of, (void)wait;
	return false;
}

void __wrap_sf_ptrace_hold(struct sf_capture *of, struct sf_thread *thread, uint64_t at_ns)
{
	(void)of, (void)at_ns;
	n_samples[thread->task.tid]++;
}

bool __wrap_sf_ptrace_sleep_is_known(const struct sf_capture *of, const struct sf_thread *thread)
{
	(void)of;
	return thread->sampled && !is_unknown;
}

void __wrap_sf_ptrace_sample_asleep(struct sf_capture *of, struct sf_thread *thread, uint64_t at_ns)
{
	const int32_t i = thread->task.tid;

	(void)at_ns;
	n_samples[i] += !__wrap_sf_ptrace_sleep_is_known(of, thread);
	sampled_place[i] = thread->look.sp;
	asleep_ns[i][sampled_place[i]] += sf_thread_take_asleep(thread, BLOCKED_PERIOD).wall_ns;
	thread->sampled = true;
}

void __wrap_sf_relay_again(struct sf_relay *relay, const struct sf_thread *thread, uint64_t time_ns, const struct sf_weight *weight)
{
	const int32_t i = thread->task.tid;

	(void)relay, (void)time_ns;
	asleep_ns[i][sampled_place[i]] += weight->wall_ns;
}

static int set_up(void **state)
{
	(void)state;
	memset(fakes, 0, sizeof(fakes));
	memset(threads, 0, sizeof(threads));
	memset(n_samples, 0, sizeof(n_samples));
	memset(asleep_ns, 0, sizeof(asleep_ns));
	options = (struct sf_capture_options){ .blocked_rate_mhz = 20000 };
	capture = (struct sf_capture){ .period_ns = PERIOD, .blocked_period_ns = BLOCKED_PERIOD, .random = 1 };
	process = (struct sf_watched_process){ .pid = 10 };
	capture.watch.options = &options;
	capture.watch.processes.items = &process;
	capture.watch.processes.n = 1;
	process_cpu_ns = 700 * MS; /* of threads that have ended */
	now_ns = 1000 * MS;
	is_unknown = false;
	for (int i = 0; i < N; i++) {
		threads[i] = (struct sf_thread){ .task = SF_TASK_CLOSED(10, i), .watched = true, .seen_ns = now_ns };
		items[i] = &threads[i];
	}
	capture.watch.threads.items = items;
	capture.watch.threads.n = N;
	return 0;
}

static void run(int i, uint64_t ns, uint64_t place)
{
	fakes[i].cpu_ns += ns;
	fakes[i].switches++;
	fakes[i].place = place;
	process_cpu_ns += ns;
}

static void ticks(unsigned n)
{
	n_looks = n_clocks = 0;
	while (n--) {
		now_ns += PERIOD;
		sf_ptrace_tick(&capture, now_ns);
	}
}

/* The first sleep of a thread is looked at for some ticks. */
static void fall_asleep(void)
{
	ticks(100);
	for (int i = 0; i < N; i++)
		assert_int_equal(n_samples[i], 1);
}

static void while_none_runs_none_is_looked_at(void **state)
{
	(void)state;
	fall_asleep();
	ticks(1000);
	assert_int_equal(n_looks, 0);
	assert_in_range(n_clocks, 200, 1000 / 2);
	assert_true(sf_ptrace_all_sleep(&capture, now_ns));
	for (int i = 0; i < N; i++) {
		assert_in_range(asleep_ns[i][0], 600 * MS, 1100 * MS);
		assert_in_range(threads[i].on_cpu.exact_ns, now_ns - 51 * MS, now_ns); /* its count is known, without a look */
	}
	capture.last_tick = true;
	ticks(1);
	for (int i = 0; i < N; i++)
		assert_int_equal(asleep_ns[i][0], 1101 * MS);
}

/* The time until then belongs to the sleep that was sampled. */
static void a_thread_that_went_to_sleep_elsewhere_is_found(void **state)
{
	(void)state;
	fall_asleep();
	ticks(300);
	run(1, 1000, 1); /* too short to be caught, or for a look at all threads at once */
	ticks(100);
	assert_int_equal(n_samples[1], 2);
	assert_in_range(asleep_ns[1][0], 400 * MS - BLOCKED_PERIOD, 400 * MS + 2 * BLOCKED_PERIOD);
	assert_int_equal(n_samples[0], 1);
	capture.last_tick = true;
	ticks(1);
	assert_in_range(asleep_ns[1][1], 1 * MS, 101 * MS + BLOCKED_PERIOD);
	assert_in_range(asleep_ns[1][0] + asleep_ns[1][1], 499 * MS, 501 * MS);
}

static void a_thread_that_runs_on_is_found_in_some_ticks(void **state)
{
	(void)state;
	fall_asleep();
	fakes[2].runs = true;
	run(2, 2 * MS, 0);
	ticks(4);
	assert_true(n_samples[2] > 1);
	assert_false(sf_ptrace_all_sleep(&capture, now_ns));
}

/* A copy that was too short, or a sleep whose walk needs registers. */
static void a_sleep_that_is_to_be_read_again_is(void **state)
{
	(void)state;
	fall_asleep();
	is_unknown = true;
	ticks(200);
	for (int i = 0; i < N; i++)
		assert_true(n_samples[i] > 2);
}

static void a_new_thread_is_looked_at_at_once(void **state)
{
	(void)state;
	capture.watch.threads.n = N - 1;
	ticks(100);
	capture.watch.threads.n = N;
	capture.watch.last_serial++;
	ticks(1);
	assert_int_equal(n_samples[N - 1], 1);
}

/* The scan, which is due at once, ends it with the others that are gone. */
static void a_thread_that_is_gone_is_left_to_the_scan(void **state)
{
	(void)state;
	ticks(2);
	capture.watch.next_scan_ns = capture.watch.next_list_ns = now_ns + 1000 * MS;
	fakes[1].has_ended = true;
	ticks(1);
	assert_int_equal(capture.watch.threads.n, N);
	for (int i = 0; i < N; i++)
		assert_int_equal(threads[i].is_gone, i == 1);
	assert_int_equal(capture.watch.next_scan_ns, 0);
	assert_int_equal(capture.watch.next_list_ns, 0);
}

#define TEST(name) cmocka_unit_test_setup(name, set_up)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(while_none_runs_none_is_looked_at),
		TEST(a_thread_that_went_to_sleep_elsewhere_is_found),
		TEST(a_thread_that_runs_on_is_found_in_some_ticks),
		TEST(a_sleep_that_is_to_be_read_again_is),
		TEST(a_new_thread_is_looked_at_at_once),
		TEST(a_thread_that_is_gone_is_left_to_the_scan),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
