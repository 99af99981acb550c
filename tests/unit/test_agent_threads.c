/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The threads that are watched, and the fate of those that cannot be: deaf threads, sleeping
 * ones, those that come and go between two looks, thousands at once, those that leave while
 * they are asked for.
 */
#include <poll.h>
#include <pthread.h>
#include <inttypes.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <cmocka.h>

#include "agent/threads/exec_preparation.h"
#include "agent/libc/own_proc.h"
#include "agent/sampler/requests.h"
#include "agent/threads/thread_entries.h"
#include "agent/threads/thread_register.h"
#include "agent/threads/api_guard.h"
#include "form.h"
#include "frozen/raw.h"
#include "sampling.h"
#include "stream/record.h"

static struct sampling sampling;

static void begin(const struct sf_agent_options *options, const struct sf_agent_clock_kind *kind)
{
	sampling_start(&sampling, options, kind, SF_MODE_SAMPLER);
}

static void end(void)
{
	sampling_stop(&sampling);
}

static uint64_t n_alone; /* threads of a test that has no others */

/* Threads are joined a little before they are gone. */
static void wait_until_alone(void)
{
	for (unsigned i = 0; i < 10000 && sf_own_thread_count() != n_alone; i++)
		usleep(1000);
}

static void (*before_the_end)(void);

static int clean(void **state)
{
	(void)state;
	before_the_end = NULL;
	wait_until_alone();
	sampling_free(&sampling);
	sampling.by_serial = NULL;
	return 0;
}

/*
 * Until the sampler, in a hurry, has made `n` more scans, from beginning to end: not in every turn of
 * its does it scan, not while a round of looks is under way. Bounded by a minute.
 */
static void wait_scans(uint32_t n)
{
	_Atomic uint32_t *n_scans = &sampling.agent.threads->n_scans;
	const uint32_t until = atomic_load(n_scans) + n + 1;

	for (int i = 0; atomic_load(n_scans) < until; i++) {
		assert_true(i < 60000);
		sf_agent_threads_hurry();
		usleep(1000);
	}
}

struct person {
	pthread_t pthread;
	pthread_barrier_t *barrier;
	const char *name;
	bool     registers;
	bool     watched;  /* else no sample speaks for what it burns */
	uint64_t used_ns;
	int32_t  tid;
	int      n_eintr;
	long     switches;
	int      pipe[2];
};

static uint64_t all_lost(const struct counted *counted)
{
	return sampling_lost_ns(counted);
}

/* --- deaf --- */

/* So much, and until it was told so often: the losses of what a look found. */
static void burn_until_told(uint64_t ns, unsigned n)
{
	const uint64_t began_ns = own_cpu_ns();
	uint64_t spoken_ns = 0, used_ns = 0;

	while ((used_ns < ns || n) && used_ns < 10 * ns) {
		const struct sf_thread_entry *entry = sf_thread_table_find(sf_handler.link.entries, gettid());
		const uint64_t now_ns = entry ? atomic_load(&entry->accounted_ns) : 0;

		n -= n && now_ns != spoken_ns;
		spoken_ns = now_ns;
		burn(1000000);
		used_ns = own_cpu_ns() - began_ns;
	}
}

static void *be_deaf(void *arg)
{
	struct person *person = arg;
	sigset_t all, before;

	person->tid = gettid();
	pthread_barrier_wait(person->barrier);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	pthread_barrier_wait(person->barrier);
	burn_until_told(400000000, 4);
	pthread_barrier_wait(person->barrier);
	pthread_barrier_wait(person->barrier); /* stopped */
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return NULL;
}

static void deaf_with(const struct sf_agent_clock_kind *kind)
{
	struct sf_agent_options options = sampling_options();
	pthread_barrier_t barrier;
	struct person person = { .barrier = &barrier };
	struct counted *counted;

	pthread_barrier_init(&barrier, NULL, 2);
	pthread_create(&person.pthread, NULL, be_deaf, &person);
	pthread_barrier_wait(&barrier);
	begin(&options, kind);
	pthread_barrier_wait(&barrier);
	pthread_barrier_wait(&barrier);
	end();
	pthread_barrier_wait(&barrier);
	pthread_join(person.pthread, NULL);
	counted = sampling_by_tid(&sampling, person.tid);
	assert_non_null(counted);
	/* Deafness shows after some time of it, so a little may be in other samples: more on a busy machine. */
	assert_true(counted->lost_ns[SF_LOSS_DEAF] >= 300000000);
	assert_true(counted->n_loss[SF_LOSS_DEAF] >= 3);
	assert_true(counted->cpu_ns <= 100000000);
	assert_int_equal(counted->cpu_ns + all_lost(counted), counted->end_cpu_ns);
}

static void deaf_threads_are_counted(void **state)
{
	(void)state;
	deaf_with(&sf_agent_clock_timer);
}

static void deaf_threads_are_counted_when_asked(void **state)
{
	(void)state;
	deaf_with(&sf_agent_clock_tick);
}

/*
 * 18 ms in turns of a millisecond: too little for one of which nothing was told to be overdue. Between them is time for several
 * looks, each of which comes after 75 ms at the latest: its time is known up to the last one.
 */
static void *be_deaf_in_short_turns(void *arg)
{
	struct person *person = arg;
	sigset_t all;

	person->tid = gettid();
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, NULL);
	pthread_barrier_wait(person->barrier);
	pthread_barrier_wait(person->barrier);
	for (unsigned i = 0; i < 18; i++) {
		burn(1000000);
		usleep(20000);
	}
	return NULL;
}

/* A thread of a server that blocks all signals, as those of apache do, and ends: its time is not that of one that was gone. */
static void deaf_threads_of_little_time_are_counted(void **state)
{
	struct sf_agent_options options = sampling_options();
	pthread_barrier_t barrier;
	struct person person = { .barrier = &barrier };
	struct counted *counted;

	(void)state;
	pthread_barrier_init(&barrier, NULL, 2);
	pthread_create(&person.pthread, NULL, be_deaf_in_short_turns, &person);
	pthread_barrier_wait(&barrier);
	begin(&options, &sf_agent_clock_timer);
	pthread_barrier_wait(&barrier);
	pthread_join(person.pthread, NULL);
	wait_scans(2);
	end();
	counted = sampling_by_tid(&sampling, person.tid);
	assert_non_null(counted);
	assert_int_equal(counted->n_samples, 0);
	assert_true(counted->lost_ns[SF_LOSS_DEAF] >= 10000000);
	assert_int_equal(counted->lost_ns[SF_LOSS_DEAF], all_lost(counted));
}

void __real_sf_agent_threads_end(struct sf_agent_threads *threads, uint64_t now_ns);
void __wrap_sf_agent_threads_end(struct sf_agent_threads *threads, uint64_t now_ns);

void __wrap_sf_agent_threads_end(struct sf_agent_threads *threads, uint64_t now_ns)
{
	if (before_the_end)
		before_the_end();
	__real_sf_agent_threads_end(threads, now_ns);
}

static pthread_t first_thread;

static bool one_stands(void)
{
	for (uint32_t i = 0; i < sf_handler.link.n_slots; i++) {
		if (sf_slot_state(atomic_load(&sf_handler.link.slots[i].word)) != SF_SLOT_FREE)
			return true;
	}
	return false;
}

/* A tick comes to the first thread; it is given a moment to stand there. */
static void ring_for_the_first(void)
{
	union sigval tick;

	tick.sival_ptr = (void *)(uintptr_t)sf_handler_value(sf_handler.config.cookie, SF_NO_SLOT, 0);
	assert_int_equal(pthread_sigqueue(first_thread, SIGPROF, tick), 0);
	for (unsigned i = 0; i < 50 && !one_stands(); i++)
		usleep(1000);
}

/*
 * A tick that was on its way when the clocks were closed comes when the sampler has looked at the slots for the last time:
 * nobody would walk the thread. It is passed over: the thread does not stand for the whole of its patience.
 */
static void a_tick_at_the_end_is_passed_over(void **state)
{
	struct sf_agent_options options = sampling_options();
	(void)state;

	first_thread = pthread_self();
	begin(&options, &sf_agent_clock_timer);
	sf_handler.config.patience_ns = 500000000; /* for one that stands all the same */
	burn(20000000);
	before_the_end = ring_for_the_first;
	end();
	before_the_end = NULL;
	assert_int_equal(sampling_by_tid(&sampling, gettid())->n_loss[SF_LOSS_LATE], 0);
	assert_int_equal(sampling_by_tid(&sampling, gettid())->n_ends, 1);
}

static int32_t first_tid;
static uint64_t taken_back_ns;

#define FEW 10 /* samples: with 16 a thread does not use little */

/* The samples of the first thread stand for less by so much. They are few: on a busy machine it may have had one for each ms. */
static void take_back(void)
{
	struct sf_thread_entry *entry = sf_thread_table_find(sf_handler.link.entries, first_tid);

	atomic_fetch_sub(&entry->accounted_ns, taken_back_ns);
	if (atomic_load(&entry->n_samples) > FEW)
		atomic_store(&entry->n_samples, FEW);
}

/* Uses so much CPU time, and so much of it after its last sample. */
static const struct counted *leave_a_rest(uint64_t used_ns, uint64_t rest_ns)
{
	struct sf_agent_options options = sampling_options();

	sampling_free(&sampling);
	sampling.by_serial = NULL;
	taken_back_ns = rest_ns;
	begin(&options, &sf_agent_clock_timer);
	burn_until_heard(used_ns);
	burn(200000);
	end();
	return sampling_by_tid(&sampling, first_tid);
}

/* CPU time after the last sample is that sample's, if it is a few ticks of the clock, or half of all at the most, or all is little. */
static void a_rest_is_the_last_samples(void **state)
{
	static const struct {
		uint64_t used_ns, rest_ns;
	} given[] = { { 100000000, 0 }, { 40000000, 30000000 } };
	const struct counted *counted;

	(void)state;
	first_tid = gettid();
	before_the_end = take_back;
	for (size_t i = 0; i < sizeof(given) / sizeof(given[0]); i++) {
		counted = leave_a_rest(given[i].used_ns, given[i].rest_ns);
		print_message("# %llu ns used, %u samples\n", (unsigned long long)counted->end_cpu_ns, (unsigned)counted->n_samples);
		assert_int_equal(counted->n_rests, 1);
		assert_int_equal(counted->lost_ns[SF_LOSS_REST], 0);
		assert_int_equal(counted->cpu_ns + all_lost(counted), counted->end_cpu_ns + taken_back_ns);
	}
	counted = leave_a_rest(100000000, 80000000);
	assert_int_equal(counted->n_rests, 0);
	assert_true(counted->lost_ns[SF_LOSS_REST] >= 80000000);
	before_the_end = NULL;
}

#define N_OF_LITTLE 10

static void *burn_little(void *arg)
{
	struct person *person = arg;

	person->tid = gettid();
	pthread_barrier_wait(person->barrier);
	pthread_barrier_wait(person->barrier); /* the sampler has found it */
	burn(1000000);
	pthread_barrier_wait(person->barrier);
	pthread_barrier_wait(person->barrier); /* stopped */
	return NULL;
}

/* A ring of the thread's clock that has a sample. */
static void sample_now(const struct person *person)
{
	struct sf_thread_entry *entry = sf_thread_table_find(sf_handler.link.entries, person->tid);

	entry->rings_passed_over = 0;
	first_thread = person->pthread;
	ring_for_the_first();
	for (unsigned i = 0; i < 60000 && !atomic_load(&entry->n_samples); i++)
		usleep(1000);
	assert_int_equal(atomic_load(&entry->n_samples), 1);
}

/* Of ten threads that use little, two have a sample: these stand for the others, too. */
static void samples_stand_for_threads_that_use_little(void **state)
{
	struct sf_agent_options options = sampling_options();
	struct person people[N_OF_LITTLE] = { 0 };
	uint64_t used_ns = 0, of_two_ns = 0, lost_ns = 0;
	pthread_barrier_t barrier;

	(void)state;
	options.rate_mhz = 1; /* no clock rings in this test */
	pthread_barrier_init(&barrier, NULL, N_OF_LITTLE + 1);
	begin(&options, &sf_agent_clock_timer);
	for (int i = 0; i < N_OF_LITTLE; i++) {
		people[i].barrier = &barrier;
		pthread_create(&people[i].pthread, NULL, burn_little, &people[i]);
	}
	pthread_barrier_wait(&barrier);
	wait_scans(3);
	pthread_barrier_wait(&barrier);
	pthread_barrier_wait(&barrier);
	sample_now(&people[0]);
	sample_now(&people[1]);
	end();
	pthread_barrier_wait(&barrier);
	for (int i = 0; i < N_OF_LITTLE; i++) {
		const struct counted *counted = sampling_by_tid(&sampling, people[i].tid);

		pthread_join(people[i].pthread, NULL);
		used_ns += counted->end_cpu_ns;
		of_two_ns += i < 2 ? counted->cpu_ns : 0;
		lost_ns += all_lost(counted);
		assert_int_equal(counted->n_rests, i < 2);
	}
	assert_true(used_ns >= N_OF_LITTLE * 1000000);
	assert_true(of_two_ns >= used_ns - used_ns / 100 && lost_ns <= used_ns / 100);
	assert_true(of_two_ns + lost_ns <= sampling.process_cpu_ns);
}

/* --- asleep --- */

#define N_SLEEPERS 40

static void *sleep_well(void *arg)
{
	struct person *person = arg;
	struct pollfd pollfd = { .fd = person->pipe[0], .events = POLLIN };

	person->tid = gettid();
	pthread_barrier_wait(person->barrier);
	if (poll(&pollfd, 1, -1) != 1)
		person->n_eintr++;
	return NULL;
}

static void fall_asleep(struct person people[N_SLEEPERS])
{
	struct sf_own_place place;
	pthread_barrier_t barrier;

	pthread_barrier_init(&barrier, NULL, N_SLEEPERS + 1);
	for (int i = 0; i < N_SLEEPERS; i++) {
		people[i].barrier = &barrier;
		assert_int_equal(pipe(people[i].pipe), 0);
		pthread_create(&people[i].pthread, NULL, sleep_well, &people[i]);
	}
	pthread_barrier_wait(&barrier);
	for (int i = 0; i < N_SLEEPERS; i++) {
		while (!sf_own_place(people[i].tid, &place) || place.awake || place.syscall != SYS_poll)
			usleep(1000);
	}
}

/* How often they were put on a CPU. */
static uint64_t switches_of(const struct person people[N_SLEEPERS])
{
	uint64_t sum = 0, switches;
	char text[96];

	for (int i = 0; i < N_SLEEPERS; i++) {
		assert_true(sf_own_read(people[i].tid, "schedstat", text, sizeof(text)));
		assert_int_equal(sscanf(text, "%*u %*u %" SCNu64, &switches), 1);
		sum += switches;
	}
	return sum;
}

static void wake_up(struct person people[N_SLEEPERS])
{
	for (int i = 0; i < N_SLEEPERS; i++) {
		assert_int_equal(write(people[i].pipe[1], "", 1), 1);
		pthread_join(people[i].pthread, NULL);
		close(people[i].pipe[0]);
		close(people[i].pipe[1]);
	}
}

static void sleepers_sleep_on(void **state)
{
	struct sf_agent_options options = sampling_options();
	struct person people[N_SLEEPERS] = { 0 };
	uint64_t before_ns, began_ns, slept_ns, ended_ns, switches;
	(void)state;

	fall_asleep(people);
	switches = switches_of(people);
	before_ns = sf_raw_now_ns();
	begin(&options, &sf_agent_clock_timer);
	began_ns = sf_raw_now_ns();
	usleep(700000);
	slept_ns = sf_raw_now_ns() - began_ns;
	end();
	ended_ns = sf_raw_now_ns() - before_ns;
	switches = switches_of(people) - switches;
	wake_up(people); /* before anything fails: they are on this stack */
	assert_int_equal(switches, 0);
	for (int i = 0; i < N_SLEEPERS; i++) {
		const struct counted *counted = sampling_by_tid(&sampling, people[i].tid);

		assert_non_null(counted);
		assert_int_equal(people[i].n_eintr, 0);
		assert_int_equal(counted->n_samples, 0);
		assert_in_range(counted->n_asleep, 1, 2);
		assert_in_range(counted->n_again, 3, 10 + slept_ns / 25000000);
		assert_int_equal(counted->syscall, SYS_poll);
		assert_in_range(counted->asleep_wall_ns, slept_ns / 100 * 70, ended_ns);
	}
}

struct waiter {
	pthread_t pthread;
	int32_t  tid;
	_Atomic uint32_t *word;
};

static void *wait_for_word(void *arg)
{
	struct waiter *waiter = arg;

	waiter->tid = gettid();
	sf_raw_futex_wait(waiter->word, atomic_load(waiter->word), 600000000);
	return NULL;
}

/* A thread that stands for a sample waits in a slot's word, or in its entry's, and is not asleep. */
static void who_waits_for_us_is_not_asleep(void **state)
{
	struct sf_agent_options options = sampling_options();
	_Atomic uint32_t word = 0;
	struct waiter waiters[3] = { 0 };
	(void)state;

	begin(&options, &sf_agent_clock_timer);
	waiters[0].word = &word;
	waiters[1].word = &sf_handler.link.slots[sf_handler.link.n_slots - 1].word;
	waiters[2].word = &sf_handler.link.entries[0].weight_decision;
	for (int i = 0; i < 3; i++)
		assert_int_equal(pthread_create(&waiters[i].pthread, NULL, wait_for_word, &waiters[i]), 0);
	for (int i = 0; i < 3; i++)
		pthread_join(waiters[i].pthread, NULL);
	end();
	for (int i = 0; i < 3; i++) {
		const struct counted *counted = sampling_by_tid(&sampling, waiters[i].tid);

		assert_non_null(counted);
		assert_int_equal(counted->n_asleep > 0, i == 0);
	}
}

#define NAPS 60

/* Wakes as often as it meant to, and for each wait it goes to sleep once. */
static void *nap(void *arg)
{
	struct person *person = arg;
	struct rusage before, after;

	person->tid = gettid();
	getrusage(RUSAGE_THREAD, &before);
	for (int i = 0; i < NAPS; i++) {
		burn(3000000);
		usleep(15000);
	}
	getrusage(RUSAGE_THREAD, &after);
	person->switches = after.ru_nvcsw - before.ru_nvcsw;
	return NULL;
}

/* The sampler asks who ran since its last tick, but not where it sleeps by now: a call that is interrupted sleeps twice. */
static void sleepers_are_not_asked(void **state)
{
	struct sf_agent_options options = sampling_options();
	struct person person = { 0 };
	uint64_t n_mended;
	(void)state;

	begin(&options, &sf_agent_clock_tick);
	n_mended = atomic_load(&sf_handler.counts.mended);
	pthread_create(&person.pthread, NULL, nap, &person);
	pthread_join(person.pthread, NULL);
	n_mended = atomic_load(&sf_handler.counts.mended) - n_mended;
	end();
	printf("# %d naps, %ld sleeps, %u calls mended, %u samples\n", NAPS, person.switches,
	       (unsigned)n_mended, sampling_by_tid(&sampling, person.tid)->n_samples);
	assert_true(sampling_by_tid(&sampling, person.tid)->n_samples > NAPS / 4);
	/* A thread that is asked in the moment in which it goes to sleep is mended. */
	assert_in_range(n_mended, 0, NAPS / 10);
}

/* --- policies --- */

#define BURN_NS UINT64_C(30000000)
#define BURN_MORE_NS UINT64_C(15000000) /* which is not watched any more, of a thread that has registered */

static void *burn_some(void *arg)
{
	struct person *person = arg;
	struct sf_error err;

	person->tid = gettid();
	if (person->name)
		pthread_setname_np(pthread_self(), person->name);
	pthread_barrier_wait(person->barrier); /* all are there */
	if (person->registers)
		sf_agent_thread_register(&err);
	pthread_barrier_wait(person->barrier); /* all are watched */
	pthread_barrier_wait(person->barrier);
	if (person->watched)
		burn_until_heard(BURN_NS);
	else
		burn(BURN_NS);
	pthread_barrier_wait(person->barrier); /* all have burnt */
	if (person->registers)
		sf_agent_thread_unregister();
	person->used_ns = own_cpu_ns();
	pthread_barrier_wait(person->barrier);
	pthread_barrier_wait(person->barrier);
	burn(BURN_MORE_NS);
	pthread_barrier_wait(person->barrier);
	pthread_barrier_wait(person->barrier); /* stopped, before it ends */
	return NULL;
}

static void run_people(struct person people[3], const struct sf_agent_options *options)
{
	pthread_barrier_t barrier;

	pthread_barrier_init(&barrier, NULL, 4);
	for (int i = 0; i < 3; i++) {
		people[i].barrier = &barrier;
		pthread_create(&people[i].pthread, NULL, burn_some, &people[i]);
	}
	pthread_barrier_wait(&barrier);
	begin(options, &sf_agent_clock_timer);
	pthread_barrier_wait(&barrier);
	wait_scans(3);
	pthread_barrier_wait(&barrier);
	pthread_barrier_wait(&barrier);
	pthread_barrier_wait(&barrier);
	wait_scans(3);
	pthread_barrier_wait(&barrier);
	if (options->only == SF_AGENT_MAIN)
		burn_until_heard(BURN_NS);
	pthread_barrier_wait(&barrier);
	end();
	pthread_barrier_wait(&barrier);
	for (int i = 0; i < 3; i++)
		pthread_join(people[i].pthread, NULL);
}

static void registered_only(void **state)
{
	struct sf_agent_options options = sampling_options();
	struct person people[3] = { { .registers = true, .watched = true }, { 0 },
				    { .registers = true, .watched = true } };
	(void)state;

	options.only = SF_AGENT_REGISTERED;
	run_people(people, &options);
	for (int i = 0; i < 3; i += 2) {
		const struct counted *counted = sampling_by_tid(&sampling, people[i].tid);

		assert_non_null(counted);
		assert_int_equal(counted->n_ends, 1);
		assert_true(counted->n_samples > 0);
		assert_int_equal(counted->cpu_ns + all_lost(counted), counted->end_cpu_ns);
		/* Not what came after, but for the moment until it waits to be forgotten. */
		assert_in_range(counted->end_cpu_ns, BURN_NS, people[i].used_ns + 5000000);
	}
	assert_null(sampling_by_tid(&sampling, people[1].tid));
	assert_null(sampling_by_tid(&sampling, gettid()));
	assert_int_equal(sampling.sum.n_loss[SF_LOSS_UNSEEN], 0);
}

static void main_only(void **state)
{
	struct sf_agent_options options = sampling_options();
	struct person people[3] = { 0 };
	(void)state;

	options.only = SF_AGENT_MAIN;
	run_people(people, &options);
	assert_int_equal(sampling.n_serials, 2);
	assert_int_equal(sampling.by_serial[1].tid, getpid());
	assert_true(sampling.by_serial[1].cpu_ns > 0);
}

static void those_whose_name_matches(void **state)
{
	struct sf_agent_options options = sampling_options();
	struct person people[3] = { { .name = "worker-1", .watched = true }, { .name = "helper" },
				    { .name = "worker-2", .watched = true } };
	const uint32_t n_with_serial = sf_handler.link.n_with_serial;
	(void)state;

	options.threads = "^worker-[0-9]$";
	run_people(people, &options);
	assert_int_equal(sf_handler.link.n_with_serial - n_with_serial, 2); /* a reader of entries at that time would miss them */
	assert_non_null(sampling_by_name(&sampling, "worker-1"));
	assert_non_null(sampling_by_name(&sampling, "worker-2"));
	assert_null(sampling_by_name(&sampling, "helper"));
	assert_int_equal(sampling.n_serials, 3);
	for (int i = 1; i <= 2; i++) {
		const struct counted *counted = &sampling.by_serial[i];

		assert_true(counted->n_samples > 0);
		assert_int_equal(counted->cpu_ns + all_lost(counted), counted->end_cpu_ns);
		assert_true(counted->end_cpu_ns >= BURN_NS + BURN_MORE_NS);
	}
}

static void *name_and_label(void *arg)
{
	struct person *person = arg;
	struct sf_error err;

	person->tid = gettid();
	assert_true(sf_agent_thread_rename("a name of more than sixteen bytes", &err));
	assert_true(sf_agent_thread_label("trace", "4bf92f35", &err));
	pthread_barrier_wait(person->barrier);
	burn_until_heard(BURN_NS);
	pthread_barrier_wait(person->barrier);
	return NULL;
}

static void names_and_labels_are_told(void **state)
{
	struct sf_agent_options options = sampling_options();
	pthread_barrier_t barrier;
	struct person person = { .barrier = &barrier };
	struct sf_error err = { 0 };
	(void)state;

	pthread_barrier_init(&barrier, NULL, 2);
	begin(&options, &sf_agent_clock_timer);
	pthread_create(&person.pthread, NULL, name_and_label, &person);
	pthread_barrier_wait(&barrier);
	wait_scans(2);
	pthread_barrier_wait(&barrier);
	pthread_join(person.pthread, NULL);
	end();
	assert_non_null(sampling_by_name(&sampling, "a name of more than sixteen bytes"));
	assert_string_equal(sampling.last_label, "trace4bf92f35");
	assert_true(sampling_by_tid(&sampling, person.tid)->label > 0);
	assert_false(sf_agent_thread_rename("", &err));
	assert_false(sf_agent_thread_label(NULL, "x", &err));
	/* Another stream is told of it again, if a thread has it. */
	sampling_free(&sampling);
	begin(&options, &sf_agent_clock_timer);
	end();
	assert_string_equal(sampling.last_label, "");
	assert_true(sf_agent_thread_label("trace", "4bf92f35", &err));
	sampling_free(&sampling);
	begin(&options, &sf_agent_clock_timer);
	end();
	assert_string_equal(sampling.last_label, "trace4bf92f35");
	assert_true(sf_agent_thread_label("trace", NULL, &err));
}

static void *wait_at(void *barrier)
{
	pthread_barrier_wait(barrier);
	return NULL;
}

/* A scan is left out where as many threads are there as were. */
static void they_are_counted(void **state)
{
	uint64_t before = sf_own_thread_count();
	pthread_barrier_t barrier;
	pthread_t thread;

	(void)state;
	assert_int_not_equal(before, 0);
	pthread_barrier_init(&barrier, NULL, 2);
	assert_int_equal(pthread_create(&thread, NULL, wait_at, &barrier), 0);
	assert_int_equal(sf_own_thread_count(), before + 1);
	pthread_barrier_wait(&barrier);
	pthread_join(thread, NULL);
	wait_until_alone();
	assert_int_equal(sf_own_thread_count(), before);
}

/* Samples of a thread that the reader was never told of would be lost. */
static void told_again_when_there_was_no_room(void **state)
{
	struct sf_agent_options options = sampling_options();
	(void)state;

	sampling_start_full(&sampling, &options, &sf_agent_clock_timer, SF_MODE_SAMPLER);
	wait_scans(40); /* past those at which names are read anew */
	sampling_make_room();
	wait_scans(2);
	burn_until_heard(50000000);
	end();
	assert_non_null(sampling_by_tid(&sampling, gettid()));
	assert_true(sampling_by_tid(&sampling, gettid())->n_samples > 0);
	assert_true(sampling.lost_records > 0);
}

/* --- visits --- */

/* A thread's work in a call of ours is not looked at, and its length is nobody's. */
static void a_visit_is_nobodys_time(void **state)
{
	struct sf_agent_options options = sampling_options();
	const struct counted *counted;
	uint64_t began_ns = sf_raw_now_ns(), ended_ns, visit_ns;
	uint32_t n_samples;
	(void)state;

	options.blocked_rate_mhz = 500000;
	begin(&options, &sf_agent_clock_timer);
	wait_scans(2);
	sf_api_guard_begin();
	visit_ns = sf_raw_now_ns();
	n_samples = atomic_load(&sf_agent_find_own_entry()->n_samples);
	burn(100000000);
	assert_int_equal(atomic_load(&sf_agent_find_own_entry()->n_samples), n_samples);
	for (int i = 0; i < 20; i++)
		usleep(10000);
	visit_ns = sf_raw_now_ns() - visit_ns;
	sf_api_guard_end();
	wait_scans(2);
	end();
	ended_ns = sf_raw_now_ns();
	counted = sampling_by_tid(&sampling, gettid());
	assert_non_null(counted);
	assert_true(counted->asleep_wall_ns <= ended_ns - began_ns - visit_ns);
	assert_int_equal(counted->cpu_ns + all_lost(counted), counted->end_cpu_ns);
}

/* --- coming and going --- */

static void *live_shortly(void *arg)
{
	burn((uint64_t)(uintptr_t)arg);
	return NULL;
}

static void start_short_life(pthread_t *ret, uintptr_t ns)
{
	assert_int_equal(pthread_create(ret, NULL, live_shortly, (void *)ns), 0);
}

/* A thread uses 20 ms between the begin of its account and the end of the scan: they are in the account. */
static void what_is_used_in_the_first_scan_is_seen(void **state)
{
	struct sf_agent_thread thread = { .watched = true, .tid = (int32_t)sf_raw0(SYS_gettid) };
	const struct sf_agent_threads threads = { .all = &thread, .n = 1 };
	const uint64_t began_ns = sf_raw_process_cpu_ns();

	(void)state;
	thread.first_cpu_ns = sf_raw_thread_cpu_ns();
	while (sf_raw_thread_cpu_ns() < thread.first_cpu_ns + 20000000)
		;
	assert_in_range(sf_agent_threads_cpu_before(&threads), began_ns - 1000000, began_ns + 1000000);
}

static void short_lives_are_unseen(void **state)
{
	struct sf_agent_options options = sampling_options();
	const struct counted *sum = &sampling.sum;
	uint64_t all_ns;
	pthread_t thread;
	(void)state;

	begin(&options, &sf_agent_clock_timer);
	for (int i = 0; i < 3000; i++) {
		assert_int_equal(pthread_create(&thread, NULL, live_shortly, (void *)100000), 0);
		pthread_join(thread, NULL);
	}
	end();
	all_ns = sum->cpu_ns + all_lost(sum);
	printf("# %.3f s: %.3f seen, %.3f unseen, %u threads came into sight\n",
	       (double)sampling.process_cpu_ns / 1e9, (double)sum->cpu_ns / 1e9,
	       (double)sum->lost_ns[SF_LOSS_UNSEEN] / 1e9, sampling.n_serials);
	assert_true(sum->lost_ns[SF_LOSS_UNSEEN] > 100000000);
	assert_in_range(all_ns, sampling.process_cpu_ns / 100 * 98,
			sampling.process_cpu_ns / 100 * 101);
	assert_int_equal(all_ns - sum->lost_ns[SF_LOSS_UNSEEN], sum->end_cpu_ns);
}

/* Asked for at each tick while they end: each request is answered, or cancelled and counted. */
static void they_leave_while_asked(void **state)
{
	struct sf_agent_options options = sampling_options();
	uint64_t until_ns;
	pthread_t threads[8];
	(void)state;

	options.rate_mhz = 5000000;
	options.per_tick = 0;
	begin(&options, &sf_agent_clock_tick);
	until_ns = sf_raw_now_ns() + (is_long_form() ? 1500000000 : 400000000);
	while (sf_raw_now_ns() < until_ns) {
		for (int i = 0; i < 8; i++)
			start_short_life(&threads[i], 3000000 + (uintptr_t)i * 500000);
		for (int i = 0; i < 8; i++)
			pthread_join(threads[i], NULL);
	}
	end(); /* finds every slot free */
	printf("# %u samples, lost: %u gone %u late %u deaf\n", sampling.sum.n_samples,
	       sampling.sum.n_loss[SF_LOSS_GONE], sampling.sum.n_loss[SF_LOSS_LATE],
	       sampling.sum.n_loss[SF_LOSS_DEAF]);
	assert_true(sampling.sum.n_samples > 10);
	assert_int_equal(sampling.sum.cpu_ns + all_lost(&sampling.sum) -
				 sampling.sum.lost_ns[SF_LOSS_UNSEEN],
			 sampling.sum.end_cpu_ns);
}

static uint32_t count_seats(void)
{
	const struct sf_thread_entry *entries = sf_agent_thread_table();
	uint32_t n = 0;

	for (uint32_t i = 0; i < SF_THREAD_TABLE_SIZE; i++)
		n += atomic_load(&entries[i].tid) > 0;
	return n;
}

#define CROWD 200

/* Once they have ended, whoever comes finds room. */
static void seats_are_given_back(void **state)
{
	struct sf_agent_options options = sampling_options();
	static pthread_t threads[CROWD];
	pthread_barrier_t barrier;
	uint32_t before;
	(void)state;

	pthread_barrier_init(&barrier, NULL, CROWD + 1);
	begin(&options, &sf_agent_clock_timer);
	wait_scans(2);
	before = count_seats();
	for (int i = 0; i < CROWD; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, wait_at, &barrier), 0);
	wait_scans(2);
	assert_true(count_seats() >= before + CROWD);
	pthread_barrier_wait(&barrier);
	for (int i = 0; i < CROWD; i++)
		pthread_join(threads[i], NULL);
	for (unsigned i = 0; i < 1000 && count_seats() > before; i++)
		wait_scans(1); /* they are joined a little before they are gone */
	assert_in_range(count_seats(), 1, before);
	end();
}

static void *take_a_seat(void *arg)
{
	(void)arg;
	return sf_agent_own_entry(NULL);
}

/*
 * With no sampler to take note of their ends: more of them than are left between two sweeps, and in the long form than there are
 * entries.
 */
static void seats_of_unwatched_threads_are_swept(void **state)
{
	const int n = is_long_form() ? SF_THREAD_TABLE_SIZE + 100 : 4000;
	void *entry = NULL;
	pthread_t thread;
	(void)state;

	for (int i = 0; i < n; i++) {
		assert_int_equal(pthread_create(&thread, NULL, take_a_seat, NULL), 0);
		pthread_join(thread, &entry);
		assert_non_null(entry);
	}
	assert_in_range(count_seats(), 1, 2500);
}

/* All places that the thread may have are those of threads that have ended. */
static void *take_a_seat_among_the_dead(void *arg)
{
	bool is_new;

	for (int32_t i = 1; i <= SF_THREAD_WINDOW; i++) {
		if (!sf_agent_claim_entry(sf_agent_thread_table(), gettid() + (i + 1024) * SF_THREAD_TABLE_SIZE, &is_new))
			break;
	}
	return take_a_seat(arg);
}

static void a_thread_finds_no_place_and_sweeps(void **state)
{
	void *(*const comers[])(void *) = { take_a_seat, take_a_seat_among_the_dead };
	void *entry = NULL;
	pthread_t thread;
	(void)state;

	for (int i = 0; i < 2; i++) {
		assert_int_equal(pthread_create(&thread, NULL, comers[i], NULL), 0);
		pthread_join(thread, &entry);
		assert_non_null(entry);
	}
}

#define MANY 5000 /* in the long form */

static void *wait_for_pipe(void *arg)
{
	char byte;

	if (read(*(int *)arg, &byte, 1) < 0)
		return arg;
	return NULL;
}

static void thousands_of_threads(void **state)
{
	/* At least, of each thread: it, where it sleeps, and how often it was seen there again; walks have frames besides. */
	const size_t told = sizeof(struct sf_stream_thread) + sizeof(struct sf_stream_sample) +
			    10 * sizeof(struct sf_stream_again);
	struct sf_agent_options options = sampling_options();
	static pthread_t threads[MANY];
	const int many = is_long_form() ? MANY : 2000;
	int n = 0, pipes[2];
	uint64_t began_cpu_ns, used_ns;
	pthread_attr_t attr;
	void *broken = NULL;
	(void)state;

	assert_int_equal(pipe(pipes), 0);
	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, 65536);
	while (n < many && pthread_create(&threads[n], &attr, wait_for_pipe, &pipes[0]) == 0)
		n++;
	began_cpu_ns = sf_raw_now_ns();
	begin(&options, &sf_agent_clock_timer);
	usleep(1500000);
	/* Where the CPUs are taken away that is not enough for five looks at each. */
	for (int i = 0; i < 60000 && sampling_told() < (uint64_t)n * told; i++)
		usleep(1000);
	used_ns = sf_sampler_cpu_ns(&sampling.agent);
	end();
	close(pipes[1]);
	for (int i = 0; i < n; i++) {
		pthread_join(threads[i], &broken);
		assert_null(broken);
	}
	close(pipes[0]);
	printf("# %d threads, %u asleep, %u again; sampler %.0f ms of %.0f\n", n,
	       sampling.sum.n_asleep, sampling.sum.n_again, (double)used_ns / 1e6,
	       (double)(sf_raw_now_ns() - began_cpu_ns) / 1e6);
	assert_int_equal(sampling.lost_records, 0);
	assert_in_range(sampling.n_serials, n + 2, n + 10);
	assert_true(sampling.sum.n_asleep >= (uint32_t)n * 95 / 100);
	assert_true(sampling.sum.n_again >= (uint32_t)n * 3);
}

/* --- leaving for another program --- */

/* A signal that exec leaves pending would reach the next program: nothing of ours may be left. */
static void nothing_is_pending_at_exec(void **state)
{
	struct sf_agent_options options = sampling_options();
	sigset_t profiling, before, pending;
	struct sf_thread_entry *entry;
	(void)state;

	sigemptyset(&profiling);
	sigaddset(&profiling, SIGPROF);
	for (int i = 0; i < 4; i++) {
		begin(&options, sf_agent_clocks[i]);
		pthread_sigmask(SIG_BLOCK, &profiling, &before);
		burn(30000000);
		sf_agent_thread_before_exec();
		burn(30000000);
		sigpending(&pending);
		assert_false(sigismember(&pending, SIGPROF));
		/* The program's own stays. */
		raise(SIGPROF);
		sf_agent_thread_before_exec();
		sigpending(&pending);
		assert_true(sigismember(&pending, SIGPROF));
		signal(SIGPROF, SIG_IGN); /* drops it */
		sf_agent_thread_after_exec();
		sf_agent_thread_after_exec();
		pthread_sigmask(SIG_SETMASK, &before, NULL);
		wait_scans(2);
		entry = sf_thread_table_find(sf_handler.link.entries, gettid());
		assert_non_null(entry);
		assert_false(atomic_load(&entry->flags) & SF_ENTRY_LEAVING);
		if (i < 2)
			assert_true(atomic_load(&entry->clock) >= 0);
		end();
		sampling_free(&sampling);
		sampling.by_serial = NULL;
	}
}

static bool has_left(const struct sf_thread_entry *entry)
{
	return atomic_load(&entry->clock) < 0 && atomic_load(&entry->flags) & SF_ENTRY_LEAVING;
}

struct leaver {
	pthread_barrier_t barrier;
	unsigned n_left;         /* threads that had left, at each of three looks */
};

/* Its exec makes it the first thread, and the first one's signals its own. */
static void *leave_for_all(void *arg)
{
	const struct sf_thread_entry *own, *first = sf_thread_table_find(sf_handler.link.entries, getpid());
	struct leaver *leaver = arg;

	sf_agent_thread_before_exec();
	own = sf_agent_find_own_entry();
	leaver->n_left = 100 * (has_left(own) + has_left(first));
	pthread_barrier_wait(&leaver->barrier);
	pthread_barrier_wait(&leaver->barrier); /* the sampler has looked at both meanwhile */
	leaver->n_left += 10 * (has_left(own) + has_left(first));
	sf_agent_thread_after_exec();
	leaver->n_left += has_left(own) + has_left(first);
	return NULL;
}

static void the_first_thread_leaves_too(void **state)
{
	const struct sf_agent_clock_kind *const kinds[] = { &sf_agent_clock_perf,
							    &sf_agent_clock_timer };
	struct sf_agent_options options = sampling_options();
	struct leaver leaver = { 0 };
	pthread_t thread;

	for (unsigned i = 0; i < 2; i++) {
		pthread_barrier_init(&leaver.barrier, NULL, 2);
		begin(&options, kinds[i]);
		wait_scans(2);
		assert_true(atomic_load(&sf_agent_find_own_entry()->clock) >= 0);
		assert_int_equal(pthread_create(&thread, NULL, leave_for_all, &leaver), 0);
		pthread_barrier_wait(&leaver.barrier);
		wait_scans(2);
		pthread_barrier_wait(&leaver.barrier);
		pthread_join(thread, NULL);
		assert_int_equal(leaver.n_left, 220);
		wait_scans(2);
		assert_true(atomic_load(&sf_agent_find_own_entry()->clock) >= 0);
		end();
		clean(state);
	}
}

#define KEPT_US 600000 /* the sampler, by a busy machine */

/* In the sampler's place, and late. */
static void *take_off_late(void *arg)
{
	struct sf_thread_entry *entry = arg;

	usleep(KEPT_US);
	atomic_store(&entry->clock, -1);
	atomic_fetch_and(&entry->flags, ~(uint32_t)SF_ENTRY_PERF);
	sf_agent_entry_done(entry, &entry->clock_unwanted);
	return NULL;
}

/* With its clock on a thread must not go, however long it takes. */
static void who_leaves_waits_for_the_sampler(void **state)
{
	struct sf_agent_options options = sampling_options();
	struct sf_thread_entry *entry;
	pthread_t sampler;
	(void)state;

	begin(&options, &sf_agent_clock_tick);
	wait_scans(2);
	sf_sampler_stop(&sampling.agent);
	if (!sf_handler.config.remote_clocks) {
		end();
		skip();
	}
	entry = sf_agent_find_own_entry();
	atomic_fetch_or(&entry->flags, SF_ENTRY_PERF);
	atomic_store(&entry->clock, 100000); /* a number of the sampler's table */
	assert_int_equal(pthread_create(&sampler, NULL, take_off_late, entry), 0);
	assert_true(sf_agent_thread_before_exec());
	assert_int_equal(atomic_load(&entry->clock), -1);
	sf_agent_thread_after_exec();
	pthread_join(sampler, NULL);
	end();
}

/* The thread says that it leaves, sees no request, and goes: a sampler that was about to ask must look once more. */
static void who_leaves_is_not_asked(void **state)
{
	struct sf_agent_options options = sampling_options();
	struct sf_agent_thread thread = { .tid = gettid(), .watched = true };
	struct sf_requests requests;
	struct sf_error err;
	sigset_t profiling, before, pending;
	(void)state;

	begin(&options, &sf_agent_clock_tick);
	wait_scans(2);
	sf_sampler_stop(&sampling.agent);
	assert_true(sf_requests_init(&requests, &err));
	thread.entry = sf_agent_find_own_entry();
	thread.serial = atomic_load(&thread.entry->serial);
	sigemptyset(&profiling);
	sigaddset(&profiling, SIGPROF);
	pthread_sigmask(SIG_BLOCK, &profiling, &before);
	assert_true(sf_agent_thread_before_exec());
	assert_true(sf_requests_send(&requests, &thread, sf_raw_now_ns()));
	sigpending(&pending);
	assert_false(sigismember(&pending, SIGPROF));
	assert_int_equal(requests.n, 0);
	assert_int_equal(atomic_load(&thread.entry->request), 0);
	sf_agent_thread_after_exec();
	assert_true(sf_requests_send(&requests, &thread, sf_raw_now_ns()));
	sigpending(&pending);
	assert_true(sigismember(&pending, SIGPROF));
	sf_requests_settle(&requests, sf_raw_now_ns() + 1000000000); /* nobody came: the slot is free again */
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	sf_requests_deinit(&requests);
	end();
}

/* What is taken to look at it is pending again, in its order. */
static void what_others_sent_stays(void **state)
{
	const int signal = sf_handler.config.signal;
	const int number = SIGRTMIN + 3;
	struct sf_agent_options options = sampling_options();
	const struct timespec now = { 0 };
	sigset_t queued, before;
	siginfo_t info;
	(void)state;

	begin(&options, &sf_agent_clock_tick);
	wait_scans(2);
	sf_sampler_stop(&sampling.agent);
	sigemptyset(&queued);
	sigaddset(&queued, number);
	pthread_sigmask(SIG_BLOCK, &queued, &before);
	sf_handler.config.signal = number;
	for (int i = 1; i <= 3; i++)
		assert_int_equal(pthread_sigqueue(pthread_self(), number, (union sigval){ .sival_int = i }), 0);
	assert_false(sf_agent_thread_drop_sent());
	for (int i = 1; i <= 3; i++)
		assert_true(sigtimedwait(&queued, &info, &now) == number && info.si_value.sival_int == i);
	assert_true(sf_agent_thread_drop_sent());
	sf_handler.config.signal = signal;
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	end();
}

/* --- pauses --- */

#define PART_NS UINT64_C(40000000) /* before the pause, and after it */
#define PAUSE_NS UINT64_C(80000000)

static void what_runs_in_a_pause_is_nobodys(void **state)
{
	struct sf_agent_options options = sampling_options();
	const struct counted *sum = &sampling.sum;
	uint64_t began_ns = own_cpu_ns(), used_ns;
	(void)state;

	begin(&options, &sf_agent_clock_timer);
	burn(PART_NS);
	atomic_store(&sf_handler.link.mode, SF_MODE_OFF);
	atomic_store(&sampling.agent.paused, true);
	wait_scans(2);
	burn(PAUSE_NS);
	atomic_store(&sampling.agent.paused, false);
	wait_scans(2);
	atomic_store(&sf_handler.link.mode, SF_MODE_SAMPLER);
	burn(PART_NS);
	end();
	used_ns = own_cpu_ns() - began_ns - PAUSE_NS;
	/* All of both burns, also what ran after the last sample before the pause. */
	assert_in_range(sum->end_cpu_ns, 2 * PART_NS, used_ns);
	assert_int_equal(sum->cpu_ns + all_lost(sum) - sum->lost_ns[SF_LOSS_UNSEEN],
			 sum->end_cpu_ns);
	assert_true(sum->lost_ns[SF_LOSS_UNSEEN] <= 5000000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(deaf_threads_are_counted, clean),
		cmocka_unit_test_teardown(deaf_threads_of_little_time_are_counted, clean),
		cmocka_unit_test_teardown(deaf_threads_are_counted_when_asked, clean),
		cmocka_unit_test_teardown(a_tick_at_the_end_is_passed_over, clean),
		cmocka_unit_test_teardown(a_rest_is_the_last_samples, clean),
		cmocka_unit_test_teardown(samples_stand_for_threads_that_use_little, clean),
		cmocka_unit_test_teardown(sleepers_sleep_on, clean),
		cmocka_unit_test_teardown(who_waits_for_us_is_not_asleep, clean),
		cmocka_unit_test_teardown(sleepers_are_not_asked, clean),
		cmocka_unit_test_teardown(registered_only, clean),
		cmocka_unit_test_teardown(main_only, clean),
		cmocka_unit_test_teardown(those_whose_name_matches, clean),
		cmocka_unit_test_teardown(names_and_labels_are_told, clean),
		cmocka_unit_test_teardown(they_are_counted, clean),
		cmocka_unit_test_teardown(told_again_when_there_was_no_room, clean),
		cmocka_unit_test_teardown(a_visit_is_nobodys_time, clean),
		cmocka_unit_test(what_is_used_in_the_first_scan_is_seen),
		cmocka_unit_test_teardown(short_lives_are_unseen, clean),
		cmocka_unit_test_teardown(they_leave_while_asked, clean),
		cmocka_unit_test_teardown(seats_are_given_back, clean),
		cmocka_unit_test_teardown(seats_of_unwatched_threads_are_swept, clean),
		cmocka_unit_test_teardown(a_thread_finds_no_place_and_sweeps, clean),
		cmocka_unit_test_teardown(thousands_of_threads, clean),
		cmocka_unit_test_teardown(what_runs_in_a_pause_is_nobodys, clean),
		cmocka_unit_test(nothing_is_pending_at_exec),
		cmocka_unit_test(the_first_thread_leaves_too),
		cmocka_unit_test_teardown(who_leaves_is_not_asked, clean),
		cmocka_unit_test_teardown(what_others_sent_stays, clean),
		cmocka_unit_test_teardown(who_leaves_waits_for_the_sampler, clean),
	};

	n_alone = sf_own_thread_count();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
