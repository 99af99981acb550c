/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The samples of displaced threads: which of the threads it was, and what becomes of it when it sleeps, runs, or was
 * displaced late. The kernel's answers, the hold and the relay are replaced (--wrap).
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "capture/ptrace/ptrace.h"
#include "capture/ptrace/stack_copy.h"

#define MS UINT64_C(1000000)
#define PERIOD (5 * MS)

static struct sf_capture capture;
static struct sf_thread threads[3];
static struct sf_stack_copy copy;
static struct sf_weight sent;
static int32_t displaced_tid;
static unsigned n_holds, n_sent, n_dropped;
static unsigned n_compared;
static bool is_refused, has_moved, has_run;

uint64_t __wrap_sf_task_turn_ns(struct sf_task *task);
bool __wrap_sf_task_run(struct sf_task *task, struct sf_task_run *ret);
struct sf_thread *__wrap_sf_watch_find(const struct sf_watch *watch, int32_t tid);
void __wrap_sf_ptrace_hold(struct sf_capture *of, struct sf_thread *thread, uint64_t now_ns);
enum sf_copy_result __wrap_sf_copy_blocked(const struct sf_task *task, const struct sf_task_look *look, const struct sf_copy_plan *plan,
					   struct sf_pages *pages, struct sf_stack_copy *ret);
struct sf_stack_copy *__wrap_sf_relay_reserve(struct sf_relay *relay, uint32_t room);
void __wrap_sf_relay_drop(struct sf_relay *relay);
void __wrap_sf_relay_send(struct sf_relay *relay, struct sf_thread *thread, const struct sf_weight *weight, uint64_t hold_ns);

/* The holding thread is none of the threads: its id is 0. */
uint64_t __wrap_sf_task_turn_ns(struct sf_task *task)
{
	n_compared += task->tid != 0;
	return !task->tid || task->tid == displaced_tid ? 2 * MS : MS;
}

bool __wrap_sf_task_run(struct sf_task *task, struct sf_task_run *ret)
{
	(void)task;
	*ret = (struct sf_task_run){ .cpu_ns = has_run ? PERIOD : 0 };
	return true;
}

struct sf_thread *__wrap_sf_watch_find(const struct sf_watch *watch, int32_t tid)
{
	(void)watch;
	return tid >= 10 && tid < 13 ? &threads[tid - 10] : NULL;
}

void __wrap_sf_ptrace_hold(struct sf_capture *of, struct sf_thread *thread, uint64_t now_ns)
{
	(void)of, (void)now_ns;
	n_holds++;
	thread->hold.is_requested = !is_refused; /* it stands later */
}

enum sf_copy_result __wrap_sf_copy_blocked(const struct sf_task *task, const struct sf_task_look *look, const struct sf_copy_plan *plan,
					   struct sf_pages *pages, struct sf_stack_copy *ret)
{
	(void)task, (void)look, (void)plan, (void)pages;
	*ret = (struct sf_stack_copy){ .state = SF_STATE_BLOCKED, .syscall = 7 };
	return has_moved ? SF_COPY_MOVED : SF_COPY_DONE;
}

struct sf_stack_copy *__wrap_sf_relay_reserve(struct sf_relay *relay, uint32_t room)
{
	(void)relay, (void)room;
	return &copy;
}

void __wrap_sf_relay_drop(struct sf_relay *relay)
{
	(void)relay;
	n_dropped++;
}

void __wrap_sf_relay_send(struct sf_relay *relay, struct sf_thread *thread, const struct sf_weight *weight, uint64_t hold_ns)
{
	(void)relay, (void)thread;
	assert_int_equal(hold_ns, 0);
	n_sent++;
	sent = *weight;
}

static int set_up(void **state)
{
	(void)state;
	capture = (struct sf_capture){ .period_ns = PERIOD, .random = 1 };
	n_holds = n_sent = n_dropped = 0;
	is_refused = has_moved = false;
	has_run = true;
	n_compared = 0;
	for (int i = 0; i < 3; i++) {
		threads[i] = (struct sf_thread){ .task = SF_TASK_CLOSED(10, 10 + i), .watched = true };
		threads[i].account.cpu_ns = threads[i].account.awake_ns = PERIOD;
		if (!sf_vec_push(&capture.watch.threads, &threads[i]))
			return -1;
	}
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	sf_vec_deinit(&capture.watch.threads);
	return 0;
}

/* But the one with this id. */
static uint64_t need_but_12(const struct sf_capture *of, const struct sf_thread *thread)
{
	(void)of;
	return thread->task.tid == 12 ? 0 : 1 + thread->account.cpu_ns;
}

/* After a sleep on the CPU of the first thread. */
static struct sf_thread *find_displaced(void)
{
	capture.displacement = (struct sf_displacement){ .is_aimed = true, .tid = 10 };
	return sf_ptrace_displaced(&capture, need_but_12);
}

static void another_thread_may_have_been_displaced(void **state)
{
	(void)state;
	displaced_tid = 10;
	assert_ptr_equal(find_displaced(), &threads[0]);
	displaced_tid = 11;
	assert_ptr_equal(find_displaced(), &threads[1]);
	displaced_tid = 12;
	assert_null(find_displaced());
}

/* The comparison is dear. The thread that the holding thread aimed at is compared in any case. */
static void a_thread_that_has_not_run_is_not_compared(void **state)
{
	(void)state;
	displaced_tid = 11;
	has_run = false;
	assert_null(find_displaced());
	assert_int_equal(n_compared, 1);
}

/* It ran in the call in which it sleeps. */
static void one_that_sleeps_has_a_sample_of_cpu_time(void **state)
{
	(void)state;
	threads[0].look.state = SF_STATE_BLOCKED;
	sf_ptrace_sample_displaced(&capture, &threads[0], MS);
	assert_int_equal(n_sent, 1);
	assert_int_equal(sent.cpu_ns, PERIOD);
	assert_int_equal(copy.state, SF_STATE_RUNNING);
	assert_int_equal(copy.syscall, SF_SYSCALL_NONE);
	assert_true(threads[0].ran);
	assert_int_equal(n_holds, 0);
}

static void one_that_has_moved_keeps_its_time(void **state)
{
	(void)state;
	threads[0].look.state = SF_STATE_BLOCKED;
	has_moved = true;
	sf_ptrace_sample_displaced(&capture, &threads[0], MS);
	assert_int_equal(n_sent, 0);
	assert_int_equal(n_dropped, 1);
	assert_int_equal(threads[0].account.cpu_ns, PERIOD);
}

/* The mark is there until the hold is answered. A hold that is refused leaves none: the next one is at a tick. */
static void one_that_runs_is_held(void **state)
{
	(void)state;
	threads[0].look.state = SF_STATE_RUNNING;
	sf_ptrace_sample_displaced(&capture, &threads[0], MS);
	assert_int_equal(n_holds, 1);
	assert_int_equal(threads[0].hold.displaced, SF_DISPLACED_ANYWHERE);
	threads[0].hold = (struct sf_thread_hold){ .is_requested = false };
	is_refused = true;
	sf_ptrace_sample_displaced(&capture, &threads[0], MS);
	assert_int_equal(n_holds, 2);
	assert_int_equal(threads[0].hold.displaced, SF_DISPLACED_NOWHERE);
}

static void a_late_displacement_gives_no_sample(void **state)
{
	(void)state;
	capture.displacement.waited_ns = MS;
	for (int sleeps = 0; sleeps < 2; sleeps++) {
		threads[0].look.state = sleeps ? SF_STATE_BLOCKED : SF_STATE_RUNNING;
		sf_ptrace_sample_displaced(&capture, &threads[0], MS);
	}
	assert_int_equal(n_holds + n_sent + n_dropped, 0);
	capture.limit.is_half_idle = true;
	threads[0].look.state = SF_STATE_RUNNING;
	sf_ptrace_sample_displaced(&capture, &threads[0], MS);
	assert_int_equal(threads[0].hold.displaced, SF_DISPLACED_IN_CALL);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(another_thread_may_have_been_displaced),
		TEST(a_thread_that_has_not_run_is_not_compared),
		TEST(one_that_sleeps_has_a_sample_of_cpu_time),
		TEST(one_that_has_moved_keeps_its_time),
		TEST(one_that_runs_is_held),
		TEST(a_late_displacement_gives_no_sample),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
