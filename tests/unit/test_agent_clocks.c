/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The clocks that ring, in both walks: with more busy threads than CPUs nearly all CPU time is
 * in samples, equal threads get equal weights, and samples and losses together are the kernel's count.
 */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <signal.h>
#include <string.h>
#include <linux/perf_event.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "agent/threads/thread_entries.h"
#include "frozen/raw.h"
#include "os/own_fd.h"
#include "form.h"
#include "sampling.h"

#define N_BUSY 6
#define MOST_PIECES 10
#define CLOSED_BURN_NS UINT64_C(150000000)

struct busy {
	pthread_t pthread;
	int32_t  tid;
	bool     is_heard;                   /* it goes on after each piece until a sample has spoken for that */
	uint64_t piece_ns;                   /* the CPU time of a piece, at the least */
	uint64_t used_ns, unheard_ns[MOST_PIECES]; /* ... which took it so much */
};

static pthread_barrier_t begin;

/* Of the work of each thread. */
static int n_pieces(void)
{
	return is_long_form() ? MOST_PIECES : 6;
}

/* What is asked for can miss the last milliseconds of a thread, which are to be less than a hundredth of all. */
static uint64_t piece_ns(const struct sf_agent_clock_kind *kind)
{
	return is_long_form() || !kind || kind == &sf_agent_clock_tick ? 25000000 : 8000000;
}

static void *work(void *arg)
{
	struct busy *busy = arg;

	busy->tid = gettid();
	pthread_barrier_wait(&begin); /* all are there ... */
	pthread_barrier_wait(&begin); /* ... and are watched */
	busy->used_ns = own_cpu_ns();
	for (int i = 0; i < n_pieces(); i++) {
		if (busy->is_heard)
			busy->unheard_ns[i] = burn_until_heard(busy->piece_ns);
		else
			burn(busy->piece_ns);
	}
	busy->used_ns = own_cpu_ns() - busy->used_ns;
	pthread_barrier_wait(&begin); /* all are done ... */
	pthread_barrier_wait(&begin); /* ... and it is stopped, before any ends */
	return NULL;
}

static void run(struct sampling *sampling, struct busy busy[N_BUSY],
		const struct sf_agent_options *options, const struct sf_agent_clock_kind *kind,
		enum sf_handler_mode mode)
{
	pthread_barrier_init(&begin, NULL, N_BUSY + 1);
	for (int i = 0; i < N_BUSY; i++) {
		/* A process's timer rings in any thread that runs: its moment in each is chance. */
		busy[i].piece_ns = piece_ns(kind);
		busy[i].is_heard = kind != &sf_agent_clock_itimer;
		assert_int_equal(pthread_create(&busy[i].pthread, NULL, work, &busy[i]), 0);
	}
	pthread_barrier_wait(&begin);
	sampling_start(sampling, options, kind, mode);
	pthread_barrier_wait(&begin);
	pthread_barrier_wait(&begin);
	sampling_stop(sampling);
	pthread_barrier_wait(&begin);
	for (int i = 0; i < N_BUSY; i++)
		pthread_join(busy[i].pthread, NULL);
	pthread_barrier_destroy(&begin);
}

static void say(const char *what, const struct sampling *sampling)
{
	const struct counted *sum = &sampling->sum;

	printf("# %s: %.4f of %.3f s in %u samples, lost:", what,
	       (double)sum->cpu_ns / (double)sampling->process_cpu_ns,
	       (double)sampling->process_cpu_ns / 1e9, sum->n_samples);
	for (unsigned i = 0; i < SF_N_LOSSES; i++) {
		if (sum->n_loss[i])
			printf(" %u %s (%.1f ms)", sum->n_loss[i], sf_loss_word(i),
			       (double)sum->lost_ns[i] / 1e6);
	}
	printf("\n");
}

/* Of threads that use less than 16 ticks of the kernel, samples of one may have the time of another (base/use_shares.h). */
static void check_account(const struct counted *one)
{
	const uint64_t all_ns = one->cpu_ns + sampling_lost_ns(one);

	assert_int_equal(one->n_ends, 1);
	if (one->end_cpu_ns >= 16 * sf_agent_clock_tick_ns())
		assert_int_equal(all_ns, one->end_cpu_ns);
	else
		assert_true(one->n_samples ? all_ns >= one->end_cpu_ns : all_ns <= one->end_cpu_ns);
}

/* Seen and lost are what the kernel counted, and each thread's account says so, too. */
static void check_sums(struct sampling *sampling)
{
	const struct counted *sum = &sampling->sum;
	uint64_t all_ns = sum->cpu_ns + sampling_lost_ns(sum);
	uint64_t unseen_ns = sum->lost_ns[SF_LOSS_UNSEEN];

	assert_int_equal(sampling->lost_records, 0);
	assert_in_range(all_ns, sampling->process_cpu_ns * 99 / 100 - 2000000,
			sampling->process_cpu_ns * 101 / 100 + 2000000);
	assert_int_equal(all_ns - unseen_ns, sum->end_cpu_ns);
	for (uint32_t i = 1; i < sampling->n_serials; i++)
		check_account(&sampling->by_serial[i]);
}

static int by_size(const void *left, const void *right)
{
	const uint64_t *a = left, *b = right;

	return (*a > *b) - (*a < *b);
}

/*
 * All but what threads used since they were heard. Nobody came or went meanwhile, so nothing is unseen but the moments
 * of the stop itself. Mostly that is soon: a timer rings on ticks of the kernel that meet its thread on a CPU, and on a busy
 * machine some pass it by.
 */
static void check_seen(struct sampling *sampling, const struct sf_agent_clock_kind *kind,
		       const struct busy busy[N_BUSY])
{
	const uint64_t most_ns = kind == &sf_agent_clock_timer ? 16000000 : 4000000;
	uint64_t unheard_ns[N_BUSY * MOST_PIECES];
	const int n = N_BUSY * n_pieces();

	assert_true(sampling->sum.cpu_ns >= sampling->process_cpu_ns / 100 * 99);
	for (int i = 0; i < n; i++)
		unheard_ns[i] = busy[i / n_pieces()].unheard_ns[i % n_pieces()];
	qsort(unheard_ns, (size_t)n, sizeof(*unheard_ns), by_size);
	printf("# heard after %.3f ms of CPU time, the longest after %.3f\n",
	       (double)unheard_ns[n / 2] / 1e6,
	       (double)unheard_ns[n - 1] / 1e6);
	assert_true(unheard_ns[n / 2] <= most_ns);
}

/*
 * Each thread's time is its own, seen or lost; and there is
 * what any used before they were first looked at.
 */
static void check_fair(struct sampling *sampling, const struct busy busy[N_BUSY])
{
	const uint64_t unseen_ns = sampling->sum.lost_ns[SF_LOSS_UNSEEN];

	for (int i = 0; i < N_BUSY; i++) {
		const struct counted *counted = sampling_by_tid(sampling, busy[i].tid);
		uint64_t known_ns;

		assert_non_null(counted);
		known_ns = counted->cpu_ns + sampling_lost_ns(counted);
		assert_true(known_ns + unseen_ns >= busy[i].used_ns / 100 * 97);
		assert_true(known_ns <= busy[i].used_ns / 100 * 102);
	}
}

/* The short form has both walks by perf's clock, and one by each of the others. */
static bool is_long(const struct sf_agent_clock_kind *kind, enum sf_handler_mode mode)
{
	return kind != &sf_agent_clock_perf &&
	       (mode == SF_MODE_HANDLER) == (kind == &sf_agent_clock_itimer);
}

static void check_clock(const struct sf_agent_clock_kind *kind, enum sf_handler_mode mode)
{
	struct sf_agent_options options = sampling_options();
	struct busy busy[N_BUSY] = { 0 };
	struct sampling sampling;
	struct sf_error err = { 0 };
	char what[64];

	if (!is_long_form() && is_long(kind, mode))
		skip();
	if (kind->check && !kind->check(&err)) {
		printf("# %s: %s\n", kind->name, err.text);
		skip();
	}
	run(&sampling, busy, &options, kind, mode);
	snprintf(what, sizeof(what), "%s, walk=%s", kind->name,
		 mode == SF_MODE_HANDLER ? "handler" : "sampler");
	say(what, &sampling);
	check_sums(&sampling);
	if (busy->is_heard)
		check_seen(&sampling, kind, busy);
	check_fair(&sampling, busy);
	assert_in_range(sampling.sum.ticks, sampling.sum.cpu_ns / 1001001 * 8 / 10,
			sampling.sum.cpu_ns / 1001001 * 14 / 10);
	assert_int_equal(sf_handler.counts.foreign, 0);
	sampling_free(&sampling);
}

#define CLOCK_TESTS(kind)                                                                          \
	static void kind##_seen_by_sampler(void **state)                                           \
	{                                                                                          \
		(void)state;                                                                       \
		check_clock(&sf_agent_clock_##kind, SF_MODE_SAMPLER);                            \
	}                                                                                          \
	static void kind##_seen_by_handler(void **state)                                           \
	{                                                                                          \
		(void)state;                                                                       \
		check_clock(&sf_agent_clock_##kind, SF_MODE_HANDLER);                            \
	}

CLOCK_TESTS(perf)
CLOCK_TESTS(timer)
CLOCK_TESTS(itimer)
CLOCK_TESTS(tick)

/* clock=wall: no CPU clock at all, and the same sums. */
static void wall_asks_who_runs(void **state)
{
	struct sf_agent_options options = sampling_options();
	struct busy busy[N_BUSY] = { 0 };
	struct sampling sampling;
	(void)state;

	options.clock = SF_AGENT_WALL;
	run(&sampling, busy, &options, NULL, SF_MODE_SAMPLER);
	say("clock=wall", &sampling);
	check_sums(&sampling);
	check_seen(&sampling, NULL, busy);
	assert_true(sampling.sum.wall_ns >= sampling.sum.cpu_ns);
	sampling_free(&sampling);
}

/* Two of six a tick: the weights still are all the time there was. */
static void few_per_tick_weigh_right(void **state)
{
	struct sf_agent_options options = sampling_options();
	struct busy busy[N_BUSY] = { 0 };
	struct sampling sampling;
	(void)state;

	options.per_tick = 2;
	options.rate_mhz = 200000;
	run(&sampling, busy, &options, &sf_agent_clock_tick, SF_MODE_SAMPLER);
	say("two per tick", &sampling);
	check_sums(&sampling);
	check_fair(&sampling, busy);
	for (int i = 0; i < N_BUSY; i++)
		assert_true(sampling_by_tid(&sampling, busy[i].tid)->n_samples >= 3);
	sampling_free(&sampling);
}

static void twenty_khz_backs_off(void **state)
{
	struct sf_agent_options options = sampling_options();
	struct busy busy[N_BUSY] = { 0 };
	struct sampling sampling;
	(void)state;

	options.rate_mhz = 20000000;
	run(&sampling, busy, &options, &sf_agent_clock_perf, SF_MODE_SAMPLER);
	say("20 kHz", &sampling);
	check_sums(&sampling);
	assert_true(sf_handler.counts.backed_off > 0);
	assert_true(sampling.sum.cpu_ns >= sampling.process_cpu_ns / 100 * 97);
	sampling_free(&sampling);
}

/* A clock that the program closed is noticed, and another takes its place; what is under its number now is left alone. */
static void check_replaced_by(int other)
{
	struct sf_agent_options options = sampling_options();
	struct sampling sampling;
	struct sf_thread_entry *entry;
	int fd;

	sf_own_table_refused = true; /* else the program cannot close them */
	sampling_start(&sampling, &options, &sf_agent_clock_perf, SF_MODE_SAMPLER);
	sf_own_table_refused = false;
	entry = sf_thread_table_find(sf_handler.link.entries, gettid());
	assert_non_null(entry);
	assert_true(atomic_load(&entry->flags) & SF_ENTRY_PERF);
	fd = atomic_load(&entry->clock);
	assert_true(fd >= 1000);
	assert_int_equal(dup2(other, fd), fd); /* closes it, and uses the number again */
	burn(CLOSED_BURN_NS);
	assert_true(atomic_load(&entry->clock) >= 0 && atomic_load(&entry->clock) != fd);
	sampling_stop(&sampling);
	say("closed", &sampling);
	assert_int_equal(close(fd), 0); /* ours did not */
	check_sums(&sampling);
	assert_true(sampling.sum.n_samples > 20);
	sampling_free(&sampling);
}

static void closed_descriptors_are_replaced(void **state)
{
	(void)state;
	check_replaced_by(0);
}

/* Only the event's id tells it from ours. */
static void a_perf_event_of_the_program_is_its_own(void **state)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.size = sizeof(attr),
		.config = PERF_COUNT_SW_TASK_CLOCK,
		.exclude_kernel = 1,
	};
	int event = (int)syscall(SYS_perf_event_open, &attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
	uint64_t counted[2];

	(void)state;
	if (event < 0)
		skip();
	assert_int_equal(read(event, &counted[0], sizeof(counted[0])), sizeof(counted[0]));
	check_replaced_by(event);
	assert_int_equal(read(event, &counted[1], sizeof(counted[1])), sizeof(counted[1]));
	assert_true(counted[1] > counted[0] + CLOSED_BURN_NS * 5 / 6); /* nobody has stopped it either */
	close(event);
}

static _Atomic unsigned n_rings;

static void count_ring(int signal)
{
	(void)signal;
	n_rings++;
}

/* A child that no fork handler saw has the clock's descriptor as well, which keeps the clock alive. */
static void a_stopped_clock_is_silent(void **state)
{
	struct sf_agent_options options = sampling_options();
	struct sigaction action = { .sa_handler = count_ring }, before;
	struct sampling sampling;
	pid_t child;
	(void)state;

	sf_own_table_refused = true;
	sampling_start(&sampling, &options, &sf_agent_clock_perf, SF_MODE_SAMPLER);
	sf_own_table_refused = false;
	child = (pid_t)sf_raw6(SYS_clone, SIGCHLD, 0, 0, 0, 0, 0);
	if (child == 0) { /* at most as long as the test */
		alarm(20);
		close(1);
		close(2);
		for (;;)
			pause();
	}
	assert_true(child > 0);
	burn(50000000);
	sampling_stop(&sampling);
	assert_true(sampling.sum.n_samples > 0);
	assert_int_equal(sigaction(SIGPROF, &action, &before), 0);
	n_rings = 0; /* one may have been under way */
	burn(100000000);
	sigaction(SIGPROF, &before, NULL);
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	assert_int_equal(n_rings, 0);
	sampling_free(&sampling);
}

/* --- forked children --- */

static int32_t make_timer(void)
{
	struct sigevent event = { .sigev_notify = SIGEV_NONE };
	int32_t timer = -1;

	assert_int_equal(sf_raw3(SYS_timer_create, CLOCK_MONOTONIC, &event, &timer), 0);
	return timer;
}

/* A child that makes timers before the agent's part of the fork: as many as there are numbers of its parent's. */
static void keep_timers(int32_t n)
{
	struct itimerspec left;

	while (make_timer() < n)
		;
	sf_agent_thread_table_forked();
	for (int32_t i = 0; i <= n; i++) {
		if (sf_raw2(SYS_timer_gettime, i, &left) != 0)
			_exit(1);
	}
	_exit(0);
}

static void check_that_timers_stay(const struct sf_agent_clock_kind *kind)
{
	struct sf_agent_options options = sampling_options();
	struct sampling sampling;
	int32_t n;
	int status;
	pid_t child;

	sampling_start(&sampling, &options, kind, SF_MODE_SAMPLER);
	burn(20000000); /* the sampler has armed them */
	n = make_timer();
	sf_raw1(SYS_timer_delete, n);
	sf_agent_thread_table_copy_to_children();
	child = fork();
	if (child == 0)
		keep_timers(n);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	sampling_stop(&sampling);
	sampling_free(&sampling);
}

static void a_childs_timers_are_its_own(void **state)
{
	(void)state;
	check_that_timers_stay(&sf_agent_clock_itimer);
	check_that_timers_stay(&sf_agent_clock_timer);
}

/* Without tables of descriptors of its own the sampler's perf clocks are in the child's table, too. */
static void a_childs_fork_does_not_stop_clocks(void **state)
{
	struct sf_agent_options options = sampling_options();
	struct sampling sampling;
	int status;
	pid_t child;

	(void)state;
	sf_own_table_refused = true;
	sampling_start(&sampling, &options, &sf_agent_clock_perf, SF_MODE_SAMPLER);
	sf_own_table_refused = false;
	burn(20000000);
	child = fork();
	if (child == 0) {
		sf_agent_thread_table_forked();
		_exit(0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	burn(CLOSED_BURN_NS);
	sampling_stop(&sampling);
	assert_true(sampling.sum.n_samples > 0);
	assert_true(sampling.sum.cpu_ns > sampling.process_cpu_ns / 2);
	sampling_free(&sampling);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(perf_seen_by_sampler),
		cmocka_unit_test(perf_seen_by_handler),
		cmocka_unit_test(timer_seen_by_sampler),
		cmocka_unit_test(timer_seen_by_handler),
		cmocka_unit_test(itimer_seen_by_sampler),
		cmocka_unit_test(itimer_seen_by_handler),
		cmocka_unit_test(tick_seen_by_sampler),
		cmocka_unit_test(tick_seen_by_handler),
		cmocka_unit_test(wall_asks_who_runs),
		cmocka_unit_test(few_per_tick_weigh_right),
		cmocka_unit_test(twenty_khz_backs_off),
		cmocka_unit_test(closed_descriptors_are_replaced),
		cmocka_unit_test(a_perf_event_of_the_program_is_its_own),
		cmocka_unit_test(a_stopped_clock_is_silent),
		cmocka_unit_test(a_childs_timers_are_its_own),
		cmocka_unit_test(a_childs_fork_does_not_stop_clocks),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
