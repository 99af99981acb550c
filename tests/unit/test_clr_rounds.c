/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rounds of walks by .NET's runtime (agent/coreclr/clr_rounds.h), with a runtime that is a table of functions here. It
 * returns each error of the real one, and things that the real one never returns. It checks the order of the calls and
 * the rules for each.
 */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "agent/coreclr/clr_profiler.h"
#include "agent/coreclr/clr_rounds.h"
#include "agent/coreclr/clr_stack.h"
#include "agent/coreclr/clr_walked.h"
#include "agent/sampler/sampler.h"
#include "form.h"
#include "os/clock.h"
#include "sampling.h"

#define RESULT(number) ((int32_t)(number))
#define CONTEXT 0xc20                /* bytes, as of .NET 8 */
#define CONTEXT_PC 0xf8
#define NO_THREAD INT32_MAX          /* and so no second walk */
#define POOL 32768                   /* frames of one suspension */

static struct sampling sampling;

/* --- a runtime --- */

enum call { PREPARE, SUSPEND, ENUMERATE, NEXT, THREAD, SNAPSHOT, METADATA, RESUME, N_CALLS };

static struct {
	int32_t results[N_CALLS];
	_Atomic unsigned n[N_CALLS];
	_Atomic bool suspended, walking;
	bool wrong_order, wrong_hold, wrong_repeat;
	uintptr_t walked;            /* in this suspension */
	unsigned n_frames;           /* of each stack; more than fit: until it is told to stop */
	uint64_t native_pc;          /* of each third frame */
	unsigned n_listed;           /* how often the thread is listed */
	uint32_t n_said;             /* what Next says, 0: the truth */
	unsigned n_aborted;          /* walks that the callback has ended */
	unsigned walk_us;
	unsigned n_passed;           /* calls of a kind that succeed before the first error */
	_Atomic bool waits;          /* for a thread that reaches no safe point: a suspension does not return */
	_Atomic unsigned n_detached;
} runtime;

static int32_t result_of(enum call call)
{
	return atomic_fetch_add(&runtime.n[call], 1) < runtime.n_passed ? SF_CLR_OK : runtime.results[call];
}

static uint32_t release(void *self)
{
	(void)self;
	return 0;
}

static int32_t query(void *self, const void *id, void **ret)
{
	(void)id;
	*ret = self;
	return SF_CLR_OK;
}

static int32_t accept(void *self)
{
	(void)self;
	return SF_CLR_OK;
}

static int32_t request_detach(void *self)
{
	(void)self;
	runtime.n_detached++;
	return SF_CLR_OK;
}

static int32_t prepare(void *self)
{
	(void)self;
	return result_of(PREPARE);
}

/* No thread may be held when this is called. */
static int32_t suspend(void *self)
{
	const int32_t result = result_of(SUSPEND);

	(void)self;
	for (uint32_t i = 0; i < sf_handler.link.n_slots; i++)
		runtime.wrong_hold |= sf_slot_state(atomic_load(&sf_handler.link.slots[i].word)) != SF_SLOT_FREE;
	runtime.wrong_order |= atomic_load(&runtime.suspended);
	while (atomic_load(&runtime.waits))
		sf_sleep_until(sf_now_ns() + 1000000);
	atomic_store(&runtime.suspended, result >= 0);
	runtime.walked = 0;
	return result;
}

static int32_t resume(void *self)
{
	(void)self;
	runtime.wrong_order |= !atomic_exchange(&runtime.suspended, false);
	return result_of(RESUME);
}

static int32_t next_threads(void *self, uint32_t n, uintptr_t *ret, uint32_t *n_ret)
{
	const int32_t result = result_of(NEXT);
	uint32_t listed = runtime.n_listed < n ? runtime.n_listed : n;

	(void)self;
	runtime.wrong_order |= !atomic_load(&runtime.suspended);
	for (uint32_t i = 0; i < listed; i++)
		ret[i] = (uintptr_t)sf_handler.config.pid;
	*n_ret = runtime.n_said ? runtime.n_said : listed;
	return result < 0 ? result : SF_CLR_FALSE;
}

static void *thread_functions[8];
static void *const *thread_object = thread_functions;

static int32_t enum_threads(void *self, void **ret)
{
	const int32_t result = result_of(ENUMERATE);

	(void)self;
	runtime.wrong_order |= !atomic_load(&runtime.suspended);
	*ret = result < 0 ? NULL : (void *)&thread_object;
	return result;
}

/* The id of the test's only thread; of a thread that is not there; of a failure. */
static int32_t thread_info(void *self, uintptr_t thread, uint32_t *tid_ret)
{
	(void)self;
	*tid_ret = (uint32_t)thread;
	return result_of(THREAD);
}

static int32_t snapshot(void *self, uintptr_t thread, sf_clr_snapshot_fn *callback, uint32_t flags, void *arg, void *seed,
			uint32_t size)
{
	static _Alignas(16) uint8_t context[CONTEXT];
	int32_t result = result_of(SNAPSHOT);

	(void)self;
	runtime.wrong_order |= !atomic_load(&runtime.suspended) || flags != 1 || seed || size;
	runtime.wrong_repeat |= runtime.walked == thread;
	runtime.walked = thread;
	memcpy(context + CONTEXT_PC, &runtime.native_pc, sizeof(runtime.native_pc));
	atomic_store(&runtime.walking, true);
	if (runtime.walk_us)
		usleep(runtime.walk_us);
	for (unsigned i = 0; result >= 0 && i < runtime.n_frames; i++) {
		/* Every third frame is a native one, whose registers lead nowhere. */
		if (callback(i % 3 == 2 ? 0 : 0x1000 + 8 * i, 0x10000 + i, 0, CONTEXT, context, arg) != SF_CLR_OK) {
			result = SF_CLR_ABORTED;
			runtime.n_aborted++;
		}
	}
	atomic_store(&runtime.walking, false);
	return result;
}

/* Names are not looked up while the runtime is suspended. */
static int32_t metadata(void *self, uintptr_t function, const void *id, void **ret, uint32_t *token_ret)
{
	(void)self;
	(void)function;
	runtime.wrong_order |= atomic_load(&runtime.suspended) || !sf_clr_is_id(id, sf_clr_metadata_id);
	*ret = NULL;
	*token_ret = 0;
	return result_of(METADATA);
}

static void *functions[115];
static void *const *object = functions;

static void make_runtime(void)
{
	static const struct {
		unsigned place;
		void *function;
	} all[] = {
		{ 0, (void *)query }, { 2, (void *)release }, { 12, (void *)thread_info }, { 19, (void *)metadata },
		{ 36, (void *)snapshot }, { 58, (void *)request_detach }, { 71, (void *)enum_threads }, { 72, (void *)prepare },
		{ 82, (void *)accept }, { 97, (void *)suspend }, { 98, (void *)resume },
	};

	for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++)
		functions[all[i].place] = all[i].function;
	thread_functions[2] = (void *)release;
	thread_functions[7] = (void *)next_threads;
}

/* --- a profile --- */

static void begin(void)
{
	const struct sf_agent_options options = sampling_options();

	sf_handler.config.arch = sf_arch_host();
	assert_true(sf_clr_rounds_begin(SF_AGENT_WALK_THEIRS, NULL));
	assert_int_equal(sf_clr_profiler_arrive((struct sf_clr_unknown *)(void *)&object), SF_CLR_OK);
	sampling_start(&sampling, &options, &sf_agent_clock_tick, SF_MODE_SAMPLER);
}

static void end(void)
{
	sampling_stop(&sampling);
	sf_clr_rounds_end();
	assert_false(runtime.wrong_order);
	assert_false(runtime.wrong_hold);
	assert_false(runtime.wrong_repeat);
	assert_false(atomic_load(&runtime.suspended));
	assert_null(atomic_load(&sf_sampler_round));
}

static int set_up(void **state)
{
	(void)state;
	memset(&runtime, 0, sizeof(runtime));
	runtime.n_frames = 5;
	runtime.n_listed = 1;
	make_runtime();
	return 0;
}

static int clean(void **state)
{
	(void)state;
	sampling_free(&sampling);
	sampling.by_serial = NULL;
	return 0;
}

/* Burns CPU time until the runtime has had so many of these calls. */
static void burn_until(enum call call, unsigned n)
{
	const uint64_t until_ns = own_cpu_ns() + UINT64_C(5000000000);

	while (atomic_load(&runtime.n[call]) < n && own_cpu_ns() < until_ns)
		burn(1000000);
	assert_true(atomic_load(&runtime.n[call]) >= n);
}

/* --- tests --- */

/*
 * All CPU time is in samples by the runtime, or in losses: also of the time between two rounds, which are further apart
 * than ticks where they take long.
 */
static void test_rounds(void **state)
{
	const struct counted *own;

	(void)state;
	runtime.walk_us = 2000;
	begin();
	burn_until(SNAPSHOT, 10);
	end();
	own = sampling_by_tid(&sampling, getpid());
	assert_non_null(own);
	assert_true(own->n_samples >= 10 && own->n_samples == atomic_load(&runtime.n[SNAPSHOT]));
	assert_true(own->cpu_ns + sampling_lost_ns(own) == own->end_cpu_ns);
	assert_int_equal(atomic_load(&runtime.n[PREPARE]), 1);
	assert_int_equal(atomic_load(&runtime.n[RESUME]), atomic_load(&runtime.n[SUSPEND]));
}

#define N_NATIVE 6

static _Atomic bool stop_burning;

/* And until the thread has samples: the rounds may be over before it is found. */
static void *burn_on(void *arg)
{
	while (!atomic_load(&stop_burning))
		burn(1000000);
	burn_until_heard(20000000);
	return arg;
}

/* Threads that the runtime does not list are requested, more of them than there are CPUs: no round begins while one is held. */
static void test_no_round_while_a_thread_is_held(void **state)
{
	pthread_t threads[N_NATIVE];

	(void)state;
	atomic_store(&stop_burning, false);
	begin();
	for (unsigned i = 0; i < N_NATIVE; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, burn_on, NULL), 0);
	burn_until(SUSPEND, 30);
	atomic_store(&stop_burning, true);
	for (unsigned i = 0; i < N_NATIVE; i++)
		pthread_join(threads[i], NULL);
	end();
	assert_true(sampling.sum.n_samples > sampling_by_tid(&sampling, getpid())->n_samples);
}

static const struct {
	uint32_t result;
	enum sf_loss cause;
} failures[] = {
	{ 0x8013135b, SF_LOSS_CLR_NOT_YET }, { 0x8013135e, SF_LOSS_CLR_TARGET }, { 0x8013135f, SF_LOSS_CLR_UNMANAGED },
	{ 0x80131360, SF_LOSS_CLR_UNSAFE }, { 0x80131361, SF_LOSS_CLR_ABORTED }, { 0x80131363, SF_LOSS_CLR_SEQUENCE },
	{ 0x80131364, SF_LOSS_CLR_ASYNCHRONOUS }, { 0x80131367, SF_LOSS_CLR_DETACHING },
	{ 0x80131371, SF_LOSS_CLR_UNINITIALIZED }, { 0x80131374, SF_LOSS_CLR_FLAGS }, { 0x80131388, SF_LOSS_CLR_SUSPENDED },
	{ 0x80004001, SF_LOSS_CLR_NOT_IMPLEMENTED }, { 0x80004005, SF_LOSS_CLR_FAIL }, { 0x80070057, SF_LOSS_CLR_ARGUMENT },
	{ 0x8007000e, SF_LOSS_CLR_MEMORY }, { 0x8000ffff, SF_LOSS_CLR_UNEXPECTED }, { 0x80000001, SF_LOSS_CLR_OTHER },
};

#define N_FAILURES (sizeof(failures) / sizeof(*failures))

/* The loss of one of the causes above, and of none of the others. */
static void check_cause(const struct counted *counted, enum sf_loss cause)
{
	assert_true(counted->n_loss[cause] > 0);
	for (size_t i = 0; i < N_FAILURES; i++) {
		if (failures[i].cause != cause)
			assert_int_equal(counted->n_loss[failures[i].cause], 0);
	}
}

/* Each is a loss of the thread, under its own name, with the thread's CPU time. The walk is not repeated. */
static void test_each_failure_of_a_walk(void **state)
{
	const struct counted *own;

	for (size_t i = 0; i < N_FAILURES; i++) {
		set_up(state);
		runtime.results[SNAPSHOT] = RESULT(failures[i].result);
		begin();
		burn_until(SNAPSHOT, 3);
		end();
		own = sampling_by_tid(&sampling, getpid());
		check_cause(own, failures[i].cause);
		assert_int_equal(own->n_loss[failures[i].cause], atomic_load(&runtime.n[SNAPSHOT]));
		assert_true(own->lost_ns[failures[i].cause] > 0);
		assert_true(own->cpu_ns + sampling_lost_ns(own) == own->end_cpu_ns);
		clean(state);
	}
}

/* Nothing is walked. The threads that the runtime has listed before have the loss. */
static void test_each_failure_of_a_suspension(void **state)
{
	for (size_t i = 0; i < N_FAILURES; i++) {
		set_up(state);
		runtime.results[SUSPEND] = RESULT(failures[i].result);
		runtime.n_passed = 1;
		begin();
		burn_until(SUSPEND, 4);
		end();
		assert_int_equal(atomic_load(&runtime.n[SNAPSHOT]), 1);
		assert_int_equal(atomic_load(&runtime.n[RESUME]), 1);
		check_cause(sampling_by_tid(&sampling, getpid()), failures[i].cause);
		clean(state);
	}
}

/* Whatever fails inside the suspension, the runtime is resumed. The thread that is not walked is sampled as any other one. */
static void test_the_runtime_is_always_resumed(void **state)
{
	static const enum call calls[] = { ENUMERATE, NEXT, THREAD };

	for (size_t i = 0; i < sizeof(calls) / sizeof(*calls); i++) {
		set_up(state);
		runtime.results[calls[i]] = RESULT(0x80131363);
		begin();
		burn_until(SUSPEND, 5);
		burn_until_heard(3000000);
		end();
		assert_int_equal(atomic_load(&runtime.n[RESUME]), atomic_load(&runtime.n[SUSPEND]));
		assert_int_equal(atomic_load(&runtime.n[SNAPSHOT]), 0);
		assert_true(sampling.by_serial[0].n_loss[SF_LOSS_CLR_SEQUENCE] > 0);
		assert_true(sampling_by_tid(&sampling, getpid())->n_samples > 0);
		clean(state);
	}
}

static void test_no_frames(void **state)
{
	(void)state;
	runtime.n_frames = 0;
	begin();
	burn_until(SNAPSHOT, 3);
	end();
	assert_true(sampling_by_tid(&sampling, getpid())->n_loss[SF_LOSS_CLR_NO_FRAMES] >= 3);
	assert_int_equal(sampling_by_tid(&sampling, getpid())->n_samples, 0);
}

/* A stack without end: the callback ends it. */
static void test_more_frames_than_there_is_room_for(void **state)
{
	(void)state;
	runtime.n_frames = POOL + 1;
	begin();
	burn_until(SNAPSHOT, 2);
	end();
	assert_true(sampling_by_tid(&sampling, getpid())->n_loss[SF_LOSS_CLR_NO_ROOM] >= 2);
	assert_int_equal(sampling_by_tid(&sampling, getpid())->n_loss[SF_LOSS_CLR_ABORTED], 0);
	assert_int_equal(runtime.n_aborted, atomic_load(&runtime.n[SNAPSHOT]));
}

/* The native frames of a stack have a place of their own, whose end is not that of the stack. */
static void test_more_native_frames_than_there_is_room_for(void **state)
{
	struct sf_clr_captured captured[6];
	struct sf_frame frames[2];
	struct sf_workspace *workspace;

	(void)state;
	begin();
	burn_until(SNAPSHOT, 1);
	end();
	runtime.n_frames = 6;
	runtime.native_pc = 0x1234;
	workspace = sf_workspace_create(&sf_handler.code.memory, 64, 8192);
	assert_non_null(workspace);
	for (uint32_t room = 0; room <= 2; room++) {
		struct sf_clr_pool pool = { captured, frames, 0, 0, 6, room };
		struct sf_clr_stack stack;

		sf_clr_stack_capture(&pool, (struct sf_clr_info *)(void *)&object, workspace, NULL, 1, NO_THREAD, &stack);
		assert_int_equal(stack.n, 6);
		assert_int_equal(pool.n_frames, room);
		assert_int_equal(stack.is_full, room < 2);
	}
	sf_workspace_destroy(workspace);
}

/* One thread that is listed often is walked once, and a number of threads beyond the array is not believed. */
static void test_a_list_that_makes_no_sense(void **state)
{
	(void)state;
	runtime.n_listed = 64;
	runtime.n_said = 4000000000u;
	begin();
	burn_until(SNAPSHOT, 3);
	end();
	assert_true(sampling_by_tid(&sampling, getpid())->n_samples >= 3);
}

/* --- a thread that ends --- */

static void notify_of_end(void)
{
	const struct sf_clr_part *part = sf_clr_profiler_part(0);

	assert_non_null(part);
	part->thread_destroyed((uintptr_t)getpid());
}

static void wait_until_walking(void)
{
	const uint64_t until_ns = own_cpu_ns() + UINT64_C(5000000000);

	while (!atomic_load(&runtime.walking) && own_cpu_ns() < until_ns)
		burn(20000);
	assert_true(atomic_load(&runtime.walking));
}

static void test_a_thread_that_ends_waits_for_the_walk(void **state)
{
	const unsigned n_ends = is_long_form() ? 3 : 1;

	(void)state;
	runtime.walk_us = 20000;
	begin();
	for (unsigned i = 0; i < n_ends; i++) {
		const unsigned n = atomic_load(&runtime.n[RESUME]);

		wait_until_walking();
		notify_of_end();
		assert_true(atomic_load(&runtime.n[RESUME]) > n);
	}
	end();
}

static void test_it_does_not_wait_for_ever(void **state)
{
	uint64_t began_ns;

	(void)state;
	runtime.walk_us = 1000000;
	begin();
	wait_until_walking();
	began_ns = sf_now_ns();
	notify_of_end();
	assert_true(atomic_load(&runtime.walking) && sf_now_ns() - began_ns >= 100000000);
	end();
}

/* The runtime ends in the middle of a walk: nothing is called afterwards. */
static void test_the_runtime_ends(void **state)
{
	unsigned n;

	(void)state;
	runtime.walk_us = 20000;
	begin();
	wait_until_walking();
	sf_clr_profiler_shut_down();
	assert_false(atomic_load(&runtime.suspended));
	n = atomic_load(&runtime.n[SUSPEND]);
	burn(20000000);
	assert_int_equal(atomic_load(&runtime.n[SUSPEND]), n);
	end();
}

static void wait_until_undone(void)
{
	const uint64_t until_ns = sf_now_ns() + UINT64_C(5000000000);

	while (sf_round_call_is_left() && sf_now_ns() < until_ns)
		sf_sleep_until(sf_now_ns() + 1000000);
	assert_false(sf_round_call_is_left());
}

/*
 * The suspension does not return: the profile ends without it, in time, and what the thread did is lost under a name of
 * its own. The profiler stays meanwhile, and no round can begin. When the suspension returns, the runtime runs again,
 * and the profiler leaves.
 */
static void test_a_suspension_that_does_not_return(void **state)
{
	const struct counted *own;
	uint64_t began_ns;

	(void)state;
	begin();
	burn_until(SNAPSHOT, 3);
	atomic_store(&runtime.waits, true);
	burn_until(SUSPEND, atomic_load(&runtime.n[SUSPEND]) + 1);
	burn(5000000);
	began_ns = sf_now_ns();
	sampling_stop(&sampling);
	assert_in_range(sf_now_ns() - began_ns, 500000000, 2500000000);
	own = sampling_by_tid(&sampling, getpid());
	assert_true(own->n_loss[SF_LOSS_CLR_NO_RETURN] == 1 && own->n_samples >= 3);
	assert_true(own->cpu_ns + sampling_lost_ns(own) == own->end_cpu_ns);
	sf_clr_rounds_end();
	assert_true(sf_round_call_is_left() && sf_clr_profiler_is_up() && !runtime.n_detached);
	assert_false(sf_clr_rounds_begin(SF_AGENT_WALK_THEIRS, NULL));
	atomic_store(&runtime.waits, false);
	wait_until_undone();
	assert_false(atomic_load(&runtime.suspended) || runtime.wrong_order);
	assert_true(!sf_clr_profiler_is_up() && runtime.n_detached == 1);
	sampling_free(&sampling);
	begin();
	burn_until(SNAPSHOT, atomic_load(&runtime.n[SNAPSHOT]) + 3);
	end();
}

/* Its runtime cannot be suspended: the runtime's other threads are not in the child. */
static void test_a_forked_child_makes_no_rounds(void **state)
{
	pid_t child;
	int status;

	(void)state;
	begin();
	assert_non_null(atomic_load(&sf_sampler_round));
	child = fork();
	assert_true(child >= 0);
	if (child == 0)
		_exit(sf_clr_rounds_begin(SF_AGENT_WALK_OURS, NULL) && !atomic_load(&sf_sampler_round) ? 0 : 1);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	end();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_rounds, set_up, clean),
		cmocka_unit_test_setup_teardown(test_no_round_while_a_thread_is_held, set_up, clean),
		cmocka_unit_test(test_each_failure_of_a_walk),
		cmocka_unit_test(test_each_failure_of_a_suspension),
		cmocka_unit_test(test_the_runtime_is_always_resumed),
		cmocka_unit_test_setup_teardown(test_no_frames, set_up, clean),
		cmocka_unit_test_setup_teardown(test_more_frames_than_there_is_room_for, set_up, clean),
		cmocka_unit_test_setup_teardown(test_more_native_frames_than_there_is_room_for, set_up, clean),
		cmocka_unit_test_setup_teardown(test_a_list_that_makes_no_sense, set_up, clean),
		cmocka_unit_test_setup_teardown(test_a_thread_that_ends_waits_for_the_walk, set_up, clean),
		cmocka_unit_test_setup_teardown(test_it_does_not_wait_for_ever, set_up, clean),
		cmocka_unit_test_setup_teardown(test_the_runtime_ends, set_up, clean),
		cmocka_unit_test_setup_teardown(test_a_suspension_that_does_not_return, set_up, clean),
		cmocka_unit_test_setup_teardown(test_a_forked_child_makes_no_rounds, set_up, clean),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
