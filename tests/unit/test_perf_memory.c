/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The memory of the perf engine on a large machine: the rings of 128 CPUs hold the records of 1,000 processes that
 * begin and 100,000 threads that run and end, again and again (of three tenths in the short form). The rings are hand-made; the threads, their accounts and
 * the relay are real. The processes are beyond all process ids of the system, so that they have ended when they are
 * looked for.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <malloc.h>
#include <cmocka.h>

#include "form.h"
#include "capture/perf/perf.h"
#include "os/clock.h"
#include "perf_rings.h"
#include "sanitizer.h"

#define COUNTS_MEMORY (!IS_ADDRESS_SANITIZER && !IS_THREAD_SANITIZER) /* their allocators are others */

#define MS UINT64_C(1000000)
#define N_CPUS 128
#define RING (512u << 10)         /* what events.c gives to each of so many CPUs */
#define N_PROCESSES 1000          /* in the long form; the short one has 300 */
#define N_THREADS 100             /* of each */
#define FIRST_PID 10000000        /* the system's are below 4194304 */
#define BYTES_PER_THREAD 1024     /* docs/engines.md */
#define N_ROUNDS 2

static struct perf_event_mmap_page *pages[N_CPUS];
static struct sf_perf perf;
static unsigned n_processes;
static uint64_t now_ns, n_samples, n_threads, n_ends, n_process_ends;

static bool on_process(void *arg, int32_t pid, int32_t parent, struct sf_error *err)
{
	(void)arg, (void)pid, (void)parent, (void)err;
	return true;
}

static bool on_process_end(void *arg, int32_t pid, struct sf_error *err)
{
	(void)arg, (void)pid, (void)err;
	n_process_ends++;
	return true;
}

static bool on_thread(void *arg, uint32_t serial, int32_t pid, int32_t tid, const char *name, uint64_t time_ns,
		      struct sf_error *err)
{
	(void)arg, (void)serial, (void)pid, (void)tid, (void)name, (void)time_ns, (void)err;
	n_threads++;
	return true;
}

static bool on_thread_end(void *arg, uint32_t serial, uint64_t time_ns, uint64_t cpu_ns, struct sf_error *err)
{
	(void)arg, (void)serial, (void)time_ns, (void)cpu_ns, (void)err;
	n_ends++;
	return true;
}

static struct sf_verdict on_sample(void *arg, uint32_t serial, struct sf_still *still, const struct sf_weight *weight,
				   uint64_t hold_ns, bool last, struct sf_error *err)
{
	(void)arg, (void)serial, (void)still, (void)weight, (void)hold_ns, (void)last, (void)err;
	n_samples++;
	return (struct sf_verdict){ .end = SF_END_ROOT };
}

static bool on_again(void *arg, uint32_t serial, uint64_t time_ns, const struct sf_weight *weight, struct sf_error *err)
{
	(void)arg, (void)serial, (void)time_ns, (void)weight, (void)err;
	return true;
}

static bool on_loss(void *arg, uint32_t serial, enum sf_loss cause, const struct sf_weight *weight, struct sf_error *err)
{
	(void)arg, (void)serial, (void)cause, (void)weight, (void)err;
	return true;
}

static bool on_idle(void *arg, uint64_t time_ns, struct sf_error *err)
{
	(void)arg, (void)time_ns, (void)err;
	return true;
}

static const struct sf_sink sink = {
	.process = on_process, .process_end = on_process_end, .thread = on_thread, .thread_end = on_thread_end,
	.sample = on_sample, .again = on_again, .loss = on_loss, .idle = on_idle,
};

static int set_up(void **state)
{
	struct sf_error err;

	(void)state;
	n_processes = is_long_form() ? N_PROCESSES : 300;
	now_ns = sf_now_ns();
	perf.base.period_ns = 10 * MS;
	perf.events = (struct sf_perf_events){ .all = true,
					       .children = true,
					       .kernel = true,
					       .period_ns = 10 * MS,
					       .n_cpus = N_CPUS,
					       .stack_bytes = 1024 };
	perf.base.options.all = true;
	perf.base.watch.options = &perf.base.options;
	perf.base.watch.keeps_ended = true;
	sf_perf_budget_begin(&perf.budget);
	for (unsigned i = 0; i < N_CPUS; i++) {
		perf.events.periods_ns[i] = perf.events.period_ns;
		pages[i] = made_ring(RING);
		sf_perf_ring_init(&perf.events.rings[i], pages[i], RING_PAGE, RING);
	}
	if (!sf_relay_open(&sink, &perf.base.relay, &err))
		return -1;
	perf.base.watch.relay = perf.base.relay;
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	for (unsigned i = 0; i < N_CPUS; i++) {
		sf_perf_ring_deinit(&perf.events.rings[i]);
		free(pages[i]);
	}
	sf_perf_newcomers_deinit(&perf.newcomers);
	sf_vec_deinit(&perf.due);
	sf_watch_close(&perf.base.watch);
	return 0;
}

/* Takes the batch where a ring has no room, as the engine does when it is half full. */
static void append(unsigned cpu, struct made_record *made)
{
	struct perf_event_mmap_page *page = pages[cpu % N_CPUS];

	made_end(made);
	if (page->data_head - page->data_tail + made->size > RING)
		sf_perf_batch(&perf, now_ns);
	ring_append(page, RING, made->bytes, made->size);
}

static void append_task(unsigned cpu, uint32_t type, int32_t pid, int32_t parent)
{
	struct made_record made;

	made_begin(&made, type, 0);
	made_ids(&made, pid, parent);
	made_ids(&made, pid, parent);
	made_u64(&made, now_ns);
	made_identity(&made, pid, pid, now_ns, cpu);
	append(cpu, &made);
}

static void append_sample(unsigned cpu, int32_t pid, int32_t tid)
{
	struct made_record made;

	made_sample(&made, pid, tid, now_ns, NULL, 0, PERF_SAMPLE_REGS_ABI_64, 256, 256);
	append(cpu, &made);
}

static int32_t pid_of(unsigned round, unsigned process)
{
	return (int32_t)(FIRST_PID + (round * n_processes + process) * N_THREADS);
}

/* All begin, each thread has a sample, all end. Returns the bytes of the heap at the most. */
static size_t run_round(unsigned round)
{
	size_t most;

	for (unsigned i = 0; i < n_processes; i++)
		append_task(i, PERF_RECORD_FORK, pid_of(round, i), FIRST_PID);
	for (unsigned i = 0; i < n_processes; i++) {
		for (int j = 0; j < N_THREADS; j++, now_ns += 1000)
			append_sample(i + (unsigned)j, pid_of(round, i), pid_of(round, i) + j);
	}
	sf_perf_batch(&perf, now_ns);
	most = mallinfo2().uordblks;
	for (unsigned i = 0; i < n_processes; i++)
		append_task(i, PERF_RECORD_EXIT, pid_of(round, i), FIRST_PID);
	sf_perf_batch(&perf, now_ns);
	for (int i = 0; i < 3 && perf.base.watch.processes.n; i++, now_ns += 1000 * MS) {
		sf_watch_scan_soon(&perf.base.watch);
		sf_watch_scan(&perf.base.watch, now_ns);
	}
	while (sf_perf_newcomers_next_ended(&perf.newcomers, UINT64_MAX))
		;
	return most;
}

static void test_many_thousands_of_threads(void **state)
{
	const size_t before = mallinfo2().uordblks, all = (size_t)n_processes * N_THREADS;
	size_t first = 0;
	struct sf_error err;

	(void)state;
	for (unsigned round = 0; round < N_ROUNDS; round++) {
		const size_t most = run_round(round) - before;

		print_message("%zu bytes for each thread at the most, %zu of all behind their end\n", most / all, mallinfo2().uordblks - before);
		assert_int_equal(perf.base.watch.threads.n, 0);
		assert_int_equal(perf.base.watch.processes.n, 0);
		assert_int_equal(perf.newcomers.known.n, 0);
		assert_true(!COUNTS_MEMORY || most / all < BYTES_PER_THREAD);
		first = round ? first : most;
		assert_true(!COUNTS_MEMORY || most < first + first / 10);
	}
	assert_true(sf_relay_close(perf.base.relay, &err));
	assert_int_equal(n_threads, N_ROUNDS * all);
	assert_int_equal(n_ends, N_ROUNDS * all);
	assert_int_equal(n_process_ends, N_ROUNDS * (uint64_t)n_processes);
	assert_int_equal(n_samples, N_ROUNDS * all);
}

/* Records of ends may be lost, and their processes' names with them: those that are known have a bound. */
static void test_newcomers_that_never_end(void **state)
{
	const size_t before = mallinfo2().uordblks;
	struct sf_perf_newcomers newcomers = { 0 };

	(void)state;
	for (int32_t pid = 1; pid <= 1000000; pid++)
		sf_perf_newcomers_fork(&newcomers, pid, 1, "process", 1);
	assert_true(newcomers.known.n <= SF_PERF_MAX_NEWCOMERS);
	assert_true(newcomers.n_dropped > 0);
	assert_true(!COUNTS_MEMORY || mallinfo2().uordblks - before < (size_t)16 << 20);
	assert_non_null(sf_perf_newcomers_find(&newcomers, 1000000)); /* the new ones are those that may come into sight */
	sf_perf_newcomers_deinit(&newcomers);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_many_thousands_of_threads, set_up, tear_down),
		cmocka_unit_test(test_newcomers_that_never_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
