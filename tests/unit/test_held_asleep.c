/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A sleeping thread that is held for its registers may have left its sleep before it stands. Then its stack is not that of the
 * sleep, and there is no sample. The hold and the kernel's counts are replaced (--wrap), and so is the way to the walking thread.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/syscall.h>

#include <cmocka.h>

#include "capture/ptrace/ptrace.h"

#define SP 0x7000
#define PC 0x5002            /* behind the call */

static struct sf_capture capture;
static struct sf_thread thread;
static struct sf_stack_copy copy;
static uint64_t sp, pc;      /* where it stands */
static unsigned n_sent, n_dropped, n_released;
static uint64_t sent_hold_ns;

bool __wrap_sf_hold_wait(struct sf_held *ret, bool wait);
void __wrap_sf_hold_release(struct sf_held *held);
bool __wrap_sf_task_run(const struct sf_task *task, struct sf_task_run *ret);
struct sf_thread *__wrap_sf_watch_find(const struct sf_watch *watch, int32_t tid);
bool __wrap_sf_copy_held(struct sf_held *held, int32_t pid, const struct sf_copy_plan *plan, struct sf_pages *pages,
			 struct sf_stack_copy *ret);
struct sf_stack_copy *__wrap_sf_relay_reserve(struct sf_relay *relay, uint32_t room);
void __wrap_sf_relay_drop(struct sf_relay *relay);
void __wrap_sf_relay_send(struct sf_relay *relay, struct sf_thread *sent, const struct sf_weight *weight, uint64_t hold_ns);

bool __wrap_sf_hold_wait(struct sf_held *ret, bool wait)
{
	(void)wait;
	*ret = (struct sf_held){ .tid = thread.task.tid, .stopped = true, .ours = true, .syscall = SYS_futex };
	return true;
}

void __wrap_sf_hold_release(struct sf_held *held)
{
	(void)held;
	n_released++;
}

bool __wrap_sf_task_run(const struct sf_task *task, struct sf_task_run *ret)
{
	(void)task;
	*ret = thread.run;
	return true;
}

struct sf_thread *__wrap_sf_watch_find(const struct sf_watch *watch, int32_t tid)
{
	(void)watch, (void)tid;
	return &thread;
}

bool __wrap_sf_copy_held(struct sf_held *held, int32_t pid, const struct sf_copy_plan *plan, struct sf_pages *pages,
			 struct sf_stack_copy *ret)
{
	(void)plan, (void)pages;
	*ret = (struct sf_stack_copy){ .pid = pid, .tid = held->tid, .syscall = SF_SYSCALL_NONE };
	ret->regs.pc = pc;
	ret->regs.r[sf_arch_host()->sp] = sp;
	return true;
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

void __wrap_sf_relay_send(struct sf_relay *relay, struct sf_thread *sent, const struct sf_weight *weight, uint64_t hold_ns)
{
	(void)relay, (void)sent;
	assert_int_equal(copy.state, SF_STATE_BLOCKED);
	assert_int_equal(copy.syscall, SYS_futex);
	assert_int_equal(weight->wall_ns, 1000);
	sent_hold_ns = hold_ns;
	n_sent++;
}

static void stand_again(uint64_t at_pc)
{
	capture.n_requested = 1;
	thread.hold.is_requested = true;
	pc = at_pc;
	assert_true(sf_ptrace_answer(&capture, false));
}

static void stand(uint64_t at_sp, uint64_t at_pc)
{
	capture = (struct sf_capture){ .period_ns = 100, .blocked_period_ns = 100 };
	thread = (struct sf_thread){ .task = SF_TASK_CLOSED(1 << 30, 1 << 30), .account = { .asleep_ns = 1000 } };
	thread.look = (struct sf_task_look){ .state = SF_STATE_BLOCKED, .placed = true, .syscall = SYS_futex, .sp = SP, .pc = PC };
	sp = at_sp;
	n_sent = n_dropped = n_released = 0;
	stand_again(at_pc);
	assert_int_equal(n_released, 1);
}

static void one_that_sleeps_on_has_a_sample(void **state)
{
	(void)state;
	stand(SP, PC);
	assert_int_equal(n_sent, 1);
	assert_true(thread.sampled);
	stand(SP, PC - 2);       /* it is to make the call again */
	assert_int_equal(n_sent, 1);
}

static void one_that_is_elsewhere_has_none(void **state)
{
	static const uint64_t places[][2] = { { SP - 16, PC }, { SP, PC + 100 }, { SP, PC - 100 } };

	(void)state;
	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		stand(places[i][0], places[i][1]);
		assert_int_equal(n_sent, 0);
		assert_int_equal(n_dropped, 1);
		assert_false(thread.sampled);
		assert_int_equal(thread.account.asleep_ns, 1000); /* for the next look */
	}
}

static void its_next_sample_has_that_hold_too(void **state)
{
	const uint64_t before_ns = UINT64_C(1) << 62; /* of holds before: longer than any clock shows */

	(void)state;
	stand(SP, PC + 100);
	thread.hold.unsent_ns = before_ns;
	stand_again(PC + 100);
	assert_int_equal(n_sent, 0);
	assert_true(thread.hold.unsent_ns >= before_ns);
	stand_again(PC);
	assert_int_equal(n_sent, 1);
	assert_true(sent_hold_ns >= before_ns);
	assert_int_equal(thread.hold.unsent_ns, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_that_sleeps_on_has_a_sample),
		cmocka_unit_test(one_that_is_elsewhere_has_none),
		cmocka_unit_test(its_next_sample_has_that_hold_too),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
