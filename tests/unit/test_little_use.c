/* SPDX-License-Identifier: Apache-2.0 */
/* How the CPU time of threads that use little is shared out among the samples of a process. The relay is replaced (--wrap). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "capture/ptrace/unsampled.h"
#include "capture/ptrace/watched.h"

#define MS UINT64_C(1000000)
#define N 30

static struct sf_thread threads[N], *pointers[N];
static struct sf_watched_process processes[2];
static struct sf_capture_options options;
static struct sf_watch watch;
static uint64_t lost_ns;
static enum sf_loss lost_as;

void __wrap_sf_relay_loss(struct sf_relay *relay, const struct sf_thread *thread, enum sf_loss cause, const struct sf_weight *weight);

void __wrap_sf_relay_loss(struct sf_relay *relay, const struct sf_thread *thread, enum sf_loss cause, const struct sf_weight *weight)
{
	(void)relay;
	assert_null(thread);
	assert_int_equal(weight->ticks, (weight->cpu_ns + MS / 2) / MS);
	lost_ns += weight->cpu_ns;
	lost_as = cause;
}

static int set_up(void **state)
{
	(void)state;
	memset(threads, 0, sizeof(threads));
	memset(processes, 0, sizeof(processes));
	processes[0].pid = 10;
	processes[1].pid = 20;
	options = (struct sf_capture_options){ .rate_mhz = 1000000 };
	watch = (struct sf_watch){ .options = &options, .processes = { .items = processes, .n = 2 }, .threads = { .items = pointers } };
	lost_ns = 0;
	return 0;
}

/* A thread that has been looked at every 10 ms, has used so much CPU time, and has so many samples. */
static struct sf_thread *add(int32_t pid, uint64_t used_ns, unsigned n_samples)
{
	struct sf_thread *thread = pointers[watch.threads.n] = &threads[watch.threads.n];

	watch.threads.n++;
	thread->task.pid = pid;
	thread->watched = true;
	for (unsigned i = 0; i < 100; i++) {
		sf_thread_count_look(thread, thread->seen_ns + 10 * MS);
		thread->seen_ns += 10 * MS;
	}
	thread->run.cpu_ns = used_ns + 77;
	thread->first_cpu_ns = 77;
	thread->n_ran = n_samples;
	thread->ran = n_samples;
	thread->account.cpu_ns = n_samples ? 0 : used_ns;
	thread->account.awake_ns = (int64_t)thread->account.cpu_ns;
	return thread;
}

static void add_without_samples(unsigned n, int32_t pid, uint64_t used_ns)
{
	while (n--)
		add(pid, used_ns, 0);
}

static void end(struct sf_thread *thread)
{
	sf_little_use_end(&watch, sf_watch_find_process(&watch, thread->task.pid), thread, 1000 * MS);
	assert_int_equal(thread->account.awake_ns, thread->account.cpu_ns);
}

/* Those without a sample come first. */
static void end_all(void)
{
	for (size_t i = 0; i < watch.threads.n; i++) {
		if (!watch.threads.items[i]->ran)
			end(watch.threads.items[i]);
	}
	for (size_t i = 0; i < watch.threads.n; i++) {
		if (watch.threads.items[i]->ran)
			end(watch.threads.items[i]);
	}
	for (int i = 0; i < 2; i++)
		sf_little_use_lose(&watch, &processes[i].little);
}

#define assert_about(value, wanted) assert_in_range(value, (wanted) - 2, (wanted) + 2)

/* Of ten threads that use a fifth of the time between two looks each, two have a sample. */
static void samples_stand_for_all(void **state)
{
	(void)state;
	add(10, 2 * MS, 1);
	add(10, 2 * MS, 1);
	add_without_samples(8, 10, 2 * MS);
	threads[0].account.cpu_ns = MS; /* since its sample: that is its own */
	threads[0].account.awake_ns = MS;
	end_all();
	assert_about(threads[0].account.cpu_ns, 9 * MS);
	assert_about(threads[1].account.cpu_ns, 8 * MS);
	for (int i = 2; i < 10; i++)
		assert_in_range(threads[i].account.cpu_ns, 0, 2);
	assert_in_range(lost_ns, 0, 9);
}

/* A sample stands for the time between eight looks at the most. The others keep what is more. */
static void a_sample_has_a_limit(void **state)
{
	uint64_t taken_ns;

	(void)state;
	add(10, 10 * MS, 1);
	add_without_samples(20, 10, 10 * MS);
	end_all();
	taken_ns = threads[0].account.cpu_ns;
	assert_in_range(taken_ns, 60 * MS, 80 * MS);
	for (int i = 1; i <= 20; i++)
		assert_about(threads[i].account.cpu_ns, (200 * MS - taken_ns) / 20);
}

/*
 * A sample stands for 75 ms, and may stand for 80: so the thread may get a fifteenth more than the 36 ms that it lacks on average. There
 * is more by chance.
 */
static void chance_has_that_limit_too(void **state)
{
	(void)state;
	add(10, 100 * MS, 2);
	add_without_samples(10, 10, 5 * MS);
	end_all();
	assert_in_range(threads[0].account.cpu_ns, 38 * MS, 39 * MS);
	for (int i = 1; i <= 10; i++)
		assert_about(threads[i].account.cpu_ns, (50 * MS - threads[0].account.cpu_ns) / 10);
}

/* A thread that uses more has its samples without chance: those without a sample are of the other kind. */
static void those_that_use_more_take_little(void **state)
{
	(void)state;
	add(10, 2 * MS, 1);
	add(10, 100 * MS, 10);
	add_without_samples(4, 10, 2 * MS);
	end_all();
	assert_in_range(threads[0].account.cpu_ns, 79 * MS / 10, 8 * MS);
	assert_about(threads[0].account.cpu_ns + threads[1].account.cpu_ns, 8 * MS);
}

/* As where others' samples are lost: a thread with many stands for as much as one with few, and one with very many for nothing. */
static void a_thread_with_more_samples_stands_for_no_more(void **state)
{
	(void)state;
	add(10, 50 * MS, 16);
	add(10, 5 * MS, 10);
	add(10, 5 * MS, 1);
	add_without_samples(4, 10, 5 * MS);
	end_all();
	assert_int_equal(threads[0].account.cpu_ns, 0);
	assert_about(threads[1].account.cpu_ns, threads[2].account.cpu_ns);
	assert_in_range(threads[1].account.cpu_ns, MS, 3 * MS);
}

/* Those that use much, and whose time is none of ours; nor may a sample be given time that was not found in its process. */
static void others_take_no_part(void **state)
{
	static const uint64_t used_ns[] = { 160 * MS, 35 * MS, 35 * MS, 35 * MS, 35 * MS };

	(void)state;
	for (int i = 0; i < 5; i++)
		add(10, used_ns[i], 0);
	threads[1].is_32_bit = threads[2].is_refused = threads[3].only_awake = true;
	threads[4].watched = false;
	add(10, 40 * MS, 6);
	add_without_samples(3, 20, MS);
	end_all();
	for (int i = 0; i < 5; i++)
		assert_int_equal(threads[i].account.cpu_ns, used_ns[i]);
	assert_int_equal(threads[5].account.cpu_ns, 0);
	assert_int_equal(threads[6].account.cpu_ns, MS);
}

/* Its sample came before the kernel counted any time. There is nothing to share, as yet or at all. */
static void a_sample_of_no_time(void **state)
{
	(void)state;
	add(10, 0, 1);
	end_all();
	assert_int_equal(threads[0].account.cpu_ns, 0);
	processes[0].little.pool_ns = MS;
	processes[0].little.found_ns = 0;
	end(&threads[0]);
	assert_int_equal(threads[0].account.cpu_ns, 0);
}

/* As of another engine. */
static void without_looks(void **state)
{
	struct sf_thread *thread = add(10, 159 * MS, 1);

	(void)state;
	assert_true(sf_little_use_is(thread));
	thread->run.cpu_ns += MS;
	assert_false(sf_little_use_is(thread));
	thread->run.cpu_ns = thread->first_cpu_ns;
	thread->n_looks = 0;
	assert_false(sf_little_use_is(thread));
}

/* The others have given, and the one with the sample has gone on: it uses more than chance has a part in. */
static void what_nobody_takes_is_lost(void **state)
{
	(void)state;
	add_without_samples(5, 10, MS);
	add(10, MS, 1);
	for (int i = 0; i < 5; i++)
		end(&threads[i]);
	sf_little_use_lose(&watch, &processes[0].little);
	assert_about(lost_ns, 5 * MS);
	assert_int_equal(lost_as, SF_LOSS_GONE);
	assert_about(watch.lost_cpu_ns, 5 * MS);
	watch.over = true;
	sf_little_use_lose(&watch, &processes[0].little);
	assert_int_equal(lost_as, SF_LOSS_REST);
}

/* No thread takes what another one, which lives, would give: that one may get a sample. What is given is there for those that end later. */
static void ends_at_different_times(void **state)
{
	(void)state;
	add(10, MS, 1);
	add(10, MS, 1);
	add_without_samples(8, 10, MS);
	end(&threads[0]);
	assert_int_equal(threads[0].account.cpu_ns, 0);
	watch.threads.items++; /* it is gone, and the parts are found anew */
	watch.threads.n--;
	processes[0].little.found_ns = 1;
	end_all();
	watch.threads.items--;
	assert_about(threads[1].account.cpu_ns, 8 * MS);
	assert_in_range(lost_ns, 0, 9);
}

#define TEST(name) cmocka_unit_test_setup(name, set_up)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(samples_stand_for_all), TEST(a_sample_has_a_limit), TEST(chance_has_that_limit_too), TEST(those_that_use_more_take_little),
		TEST(a_thread_with_more_samples_stands_for_no_more), TEST(others_take_no_part), TEST(a_sample_of_no_time), TEST(without_looks), TEST(what_nobody_takes_is_lost), TEST(ends_at_different_times),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
