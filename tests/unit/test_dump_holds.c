/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A dump holds a thread only as it is right before the hold. While the walk of a still reads files, its thread goes on: one that
 * ran, or slept where a hold breaks nothing off, writes more than a pipe holds by the time at which it would be held again. Such a
 * write ends with a part when it is interrupted.
 */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "capture/choice/engines.h"
#include "capture/dump.h"
#include "os/clock.h"
#include "os/task.h"

#define SIZE (1 << 20)       /* more than a pipe holds */
#define PATIENCE_NS UINT64_C(20000000000)

static struct shared {
	_Atomic int go, drains;
	_Atomic long written;    /* 0: not yet */
	bool waits;              /* for `go`; else the thread looks for it again and again */
} *shared;

static pid_t child;
static int fds[2];
static char bytes[SIZE];

/* --- the child --- */

static void *drain(void *arg)
{
	while (!atomic_load(&shared->drains))
		usleep(1000);
	while (read(fds[0], bytes, sizeof(bytes)) > 0)
		;
	return arg;
}

static void run_child(void)
{
	pthread_t thread;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0); /* Yama: a process beside it may trace it, too */
	if (pthread_create(&thread, NULL, drain, NULL) != 0)
		_exit(1);
	while (!atomic_load(&shared->go)) {
		if (shared->waits)
			syscall(SYS_futex, &shared->go, FUTEX_WAIT, 0, NULL, NULL, 0);
	}
	atomic_store(&shared->written, write(fds[1], bytes, sizeof(bytes)));
	for (;;)
		pause();
}

static bool is_asleep_in(int32_t syscall)
{
	struct sf_task_look look;
	struct sf_task task;
	bool is;

	if (!sf_task_open(child, child, &task))
		return false;
	is = sf_task_look(&task, &look) && look.placed && look.syscall == syscall;
	sf_task_close(&task);
	return is;
}

static void falls_asleep_in(int32_t syscall)
{
	const uint64_t end_ns = sf_now_ns() + PATIENCE_NS;

	while (!is_asleep_in(syscall)) {
		assert_true(sf_now_ns() < end_ns);
		usleep(1000);
	}
}

static void start(bool waits)
{
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	assert_ptr_not_equal(shared, MAP_FAILED);
	shared->waits = waits;
	assert_int_equal(pipe(fds), 0);
	child = fork();
	if (child == 0)
		run_child();
	assert_true(child > 0);
	if (waits)
		falls_asleep_in(SYS_futex);
}

static long end(void)
{
	const uint64_t end_ns = sf_now_ns() + PATIENCE_NS;
	long written;

	atomic_store(&shared->drains, 1);
	while (!(written = atomic_load(&shared->written)) && sf_now_ns() < end_ns)
		usleep(1000);
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	close(fds[0]);
	close(fds[1]);
	munmap(shared, sizeof(*shared));
	return written;
}

/* --- the dump --- */

static enum sf_end lacks;    /* what the first walk of the child's first thread says */
static struct sf_dump_seen seen;
static pid_t tracer;         /* of the child; 0: none */

/* The first walk takes long, as one that reads files. */
static struct sf_verdict on_still(void *arg, struct sf_still *still, struct sf_error *err)
{
	(void)arg;
	(void)err;
	if (still->tid != child || (!tracer && atomic_exchange(&shared->go, 1)))
		return (struct sf_verdict){ .end = SF_END_ROOT };
	if (tracer)
		return (struct sf_verdict){ .end = lacks };
	syscall(SYS_futex, &shared->go, FUTEX_WAKE, 1, NULL, NULL, 0);
	falls_asleep_in(SYS_write);
	return (struct sf_verdict){ .end = lacks };
}

static bool on_thread(void *arg, const struct sf_dump_seen *thread, struct sf_error *err)
{
	(void)arg;
	(void)err;
	if (thread->tid == child)
		seen = *thread;
	return true;
}

static void dump(void)
{
	const struct sf_engine *engine = sf_engine_by_name("ptrace");
	const struct sf_dump_sink sink = { .still = on_still, .thread = on_thread };
	struct sf_error err = { 0 };
	struct sf_dump_cost cost;

	if (!engine->check_dump(child, &err)) {
		end();
		print_message("%s\n", err.text);
		skip();
	}
	assert_true(engine->dump(child, &sink, &cost, &err));
}

static void assert_read_in_its_write(void)
{
	assert_int_equal(end(), SIZE);
	assert_int_equal(seen.loss, -1);
	assert_true(seen.unheld);
	assert_int_equal(seen.state, SF_STATE_BLOCKED);
	assert_int_equal(seen.syscall, SYS_write);
}

static void one_that_ran(void **state)
{
	(void)state;
	lacks = SF_END_COPY;
	start(false);
	dump();
	assert_true(seen.held_ns > 0);
	assert_read_in_its_write();
}

static void one_that_slept_in_another_call(void **state)
{
	(void)state;
	lacks = SF_END_REGISTER;
	start(true);
	dump();
	assert_int_equal(seen.held_ns, 0);
	assert_read_in_its_write();
}

/* Its stack was read, and the hold that would give the rest of the registers does not come about. */
static void one_that_is_traced(void **state)
{
	const uint64_t end_ns = sf_now_ns() + PATIENCE_NS;

	(void)state;
	lacks = SF_END_REGISTER;
	start(true);
	tracer = fork();
	if (tracer == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		ptrace(PTRACE_SEIZE, child, NULL, NULL);
		for (;;)
			pause();
	}
	while (sf_task_tracer(child, child) != tracer) {
		assert_true(sf_now_ns() < end_ns);
		usleep(1000);
	}
	dump();
	kill(tracer, SIGKILL);
	waitpid(tracer, NULL, 0);
	tracer = 0;
	atomic_store(&shared->go, 1);
	syscall(SYS_futex, &shared->go, FUTEX_WAKE, 1, NULL, NULL, 0);
	assert_int_equal(end(), SIZE);
	assert_int_equal(seen.loss, -1);
	assert_true(seen.unheld);
	assert_int_equal(seen.state, SF_STATE_BLOCKED);
	assert_int_equal(seen.syscall, SYS_futex);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_that_ran),
		cmocka_unit_test(one_that_slept_in_another_call),
		cmocka_unit_test(one_that_is_traced),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
