/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A Java virtual machine of a few functions, which answers late: what a profile wanted of it must not stay on when
 * it is over.
 */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "agent/java/jvm_tool.h"

#define PLACES 256
#define EVENTS 100

/* The machine: three tables, and objects that point to them. */
static const void *vm_table[PLACES], *jni_table[PLACES], *jvmti_table[PLACES];
static const void *const *vm = vm_table, *const *jni = jni_table, *const *jvmti = jvmti_table;
static pthread_mutex_t door = PTHREAD_MUTEX_INITIALIZER; /* locked: it answers nobody */
static _Atomic int n_waiting, n_detached, is_on[EVENTS];
static pthread_mutex_t midst = PTHREAD_MUTEX_INITIALIZER; /* locked: it stands still where an event is put on */

static _Atomic bool is_day_ahead; /* as if it were set back soon: who waits by the time of day waits an hour */

int __real_clock_gettime(clockid_t clock, struct timespec *ret);
int __wrap_clock_gettime(clockid_t clock, struct timespec *ret);

int __wrap_clock_gettime(clockid_t clock, struct timespec *ret)
{
	int result = __real_clock_gettime(clock, ret);

	if (clock == CLOCK_REALTIME && atomic_load(&is_day_ahead))
		ret->tv_sec += 3600;
	return result;
}

static int32_t attach(void *object, void **ret, void *how)
{
	(void)object, (void)how;
	atomic_fetch_add(&n_waiting, 1);
	pthread_mutex_lock(&door);
	pthread_mutex_unlock(&door);
	*ret = (void *)&jni;
	return 0;
}

static int32_t detach(void *object)
{
	(void)object;
	atomic_fetch_add(&n_detached, 1);
	return 0;
}

static int32_t get_env(void *object, void **ret, int32_t version)
{
	(void)object;
	assert_int_equal(version, SF_JVMTI_1_2);
	*ret = (void *)&jvmti;
	return 0;
}

static int32_t notify(void *object, int32_t on, int32_t event, void *thread, ...)
{
	(void)object, (void)thread;
	assert_in_range(on, 0, 1);
	if (on && event == SF_JVM_THREAD_END) {
		pthread_mutex_lock(&midst);
		pthread_mutex_unlock(&midst);
	}
	atomic_store(&is_on[event], on != 0);
	return 0;
}

static int32_t fine(void)
{
	return 0;
}

static int32_t fails(void)
{
	return 1;
}

static int make_machine(void **state)
{
	(void)state;
	for (unsigned i = 0; i < PLACES; i++)
		vm_table[i] = jni_table[i] = jvmti_table[i] = (const void *)fine;
	vm_table[5] = (const void *)detach;
	vm_table[6] = (const void *)get_env;
	vm_table[7] = (const void *)attach;
	jvmti_table[1] = (const void *)notify;
	jvmti_table[130] = (const void *)fails;   /* GetSystemProperty */
	sf_jvm_tool_meet((struct sf_jni_vm *)&vm, true);
	return 0;
}

static int n_on(void)
{
	int n = 0;

	for (int i = 0; i < EVENTS; i++)
		n += i != SF_JVM_INIT && i != SF_JVM_DEATH && atomic_load(&is_on[i]);
	return n;
}

static void wait_until(const _Atomic int *what, int value)
{
	for (int i = 0; i < 2000 && atomic_load(what) < value; i++)
		usleep(5000);
	assert_true(atomic_load(what) >= value);
}

static void begin_profile(void)
{
	const struct sf_agent_options options = { .runtime_walks = { SF_AGENT_WALK_OURS } };
	struct sf_error err = { 0 };

	assert_true(sf_jvm_tool_begin(&options, &err));
}

static void events_are_on_while_a_profile_is_under_way(void **state)
{
	(void)state;
	begin_profile();
	assert_true(atomic_load(&is_on[SF_JVM_THREAD_START]) && atomic_load(&is_on[SF_JVM_THREAD_END]));
	assert_int_equal(n_on(), 2);
	sf_jvm_tool_end();
	assert_int_equal(n_on(), 0);
	assert_true(atomic_load(&is_on[SF_JVM_DEATH]));
}

/* Both errands are given up, and run when the machine answers again, in any order. */
static void one_that_answers_late_has_none_on(void **state)
{
	int before = atomic_load(&n_detached);

	(void)state;
	pthread_mutex_lock(&door);
	atomic_store(&is_day_ahead, true);
	begin_profile();
	sf_jvm_tool_end();
	atomic_store(&is_day_ahead, false);
	assert_int_equal(atomic_load(&n_detached), before);
	pthread_mutex_unlock(&door);
	wait_until(&n_detached, before + 2);
	assert_int_equal(n_on(), 0);
}

/* It has begun to put events on, and the profile is over before it goes on with that. */
static void nor_one_that_was_in_the_midst_of_it(void **state)
{
	int before = atomic_load(&n_detached);

	(void)state;
	pthread_mutex_lock(&midst);
	begin_profile();
	sf_jvm_tool_end();
	assert_int_equal(atomic_load(&n_detached), before + 1);
	assert_int_equal(n_on(), 0);
	pthread_mutex_unlock(&midst);
	wait_until(&n_detached, before + 2);
	assert_int_equal(n_on(), 0);
}

/* A profile that is under way when the machine answers gets what it wanted. */
static void one_that_answers_late_still_serves(void **state)
{
	int before = atomic_load(&n_detached);

	(void)state;
	pthread_mutex_lock(&door);
	begin_profile();
	assert_int_equal(n_on(), 0);
	pthread_mutex_unlock(&door);
	wait_until(&n_detached, before + 1);
	assert_int_equal(n_on(), 2);
	sf_jvm_tool_end();
	assert_int_equal(n_on(), 0);
}

/* The first profile's end comes late, into the second one. */
static void a_late_end_ends_nothing_new(void **state)
{
	int before = atomic_load(&n_detached);

	(void)state;
	begin_profile();
	pthread_mutex_lock(&door);
	sf_jvm_tool_end();
	begin_profile();
	pthread_mutex_unlock(&door);
	wait_until(&n_detached, before + 3);
	assert_int_equal(n_on(), 2);
	sf_jvm_tool_end();
	assert_int_equal(n_on(), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(events_are_on_while_a_profile_is_under_way),
		cmocka_unit_test(one_that_answers_late_has_none_on),
		cmocka_unit_test(nor_one_that_was_in_the_midst_of_it),
		cmocka_unit_test(one_that_answers_late_still_serves),
		cmocka_unit_test(a_late_end_ends_nothing_new),
	};

	return cmocka_run_group_tests(tests, make_machine, NULL);
}
