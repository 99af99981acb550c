/* SPDX-License-Identifier: Apache-2.0 */
/* Words of /proc for a thread that the kernel seldom writes: they are in a file of ours. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "os/task.h"

/* The result of a look at a thread of this process, if these are the words of its `syscall` file. */
static struct sf_task_look look_at(int32_t tid, const char *words)
{
	struct sf_task task = { .pid = getpid(), .tid = tid, .run_fd = -1, .stat_fd = -1 };
	struct sf_task_look look;

	task.look_fd = memfd_create("syscall", 0);
	assert_true(task.look_fd >= 0);
	assert_int_equal(write(task.look_fd, words, strlen(words)), (ssize_t)strlen(words));
	assert_true(sf_task_look(&task, &look));
	close(task.look_fd);
	return look;
}

#define NOWHERE "-1 0x7ffd00001000 0x401136\n"
#define IN_POLL "7 0x1 0x2 0x3 0x4 0x5 0x6 0x7ffd00001000 0x401136\n"

static void test_words(void **state)
{
	struct sf_task_look look = look_at(gettid(), IN_POLL);

	(void)state;
	assert_int_equal(look.state, SF_STATE_BLOCKED);
	assert_int_equal(look.syscall, 7);
	assert_int_equal(look.args[5], 6);
	assert_true(look.placed && look.sp == 0x7ffd00001000 && look.pc == 0x401136);
	assert_int_equal(look_at(gettid(), "running\n").state, SF_STATE_RUNNING);
}

/* Let go, and in no run queue yet: this thread runs, whatever the file says. */
static void test_being_woken(void **state)
{
	struct sf_task_look look = look_at(gettid(), NOWHERE);

	(void)state;
	assert_int_equal(look.state, SF_STATE_RUNNING);
	assert_int_equal(look.syscall, SF_SYSCALL_NONE);
	assert_false(look.placed);
}

static int ends[2];
static _Atomic int32_t sleeper;

static void *sleep_on(void *arg)
{
	char byte;

	atomic_store(&sleeper, gettid());
	return read(ends[0], &byte, 1) == 0 ? arg : NULL;
}

/* It sleeps in none of its calls: a page fault. */
static void test_page_fault(void **state)
{
	struct sf_task_look look;
	pthread_t thread;
	int32_t tid;

	(void)state;
	assert_int_equal(pipe(ends), 0);
	assert_int_equal(pthread_create(&thread, NULL, sleep_on, NULL), 0);
	while (!(tid = atomic_load(&sleeper)) || sf_task_letter(getpid(), tid) != 'S')
		usleep(1000);
	look = look_at(tid, NOWHERE);
	close(ends[1]);
	pthread_join(thread, NULL);
	close(ends[0]);
	assert_int_equal(look.state, SF_STATE_BLOCKED);
	assert_int_equal(look.syscall, SF_SYSCALL_FAULT);
	assert_true(look.placed);
}

#ifdef __x86_64__
/* A look at a thread whose pc is behind this code. */
static struct sf_task_look look_behind(const void *code, const char *number_and_args)
{
	char words[200];

	snprintf(words, sizeof(words), "%s 0x7ffd00001000 0x%lx\n", number_and_args, (unsigned long)(uintptr_t)code + 2);
	return look_at(gettid(), words);
}

/* Calls of i386 have other numbers: 162 would be sync. What only i386 has, such as msgrcv's ipc, has no number here. */
static void test_i386(void **state)
{
	static const uint8_t int80[] = { 0xcd, 0x80 }, syscall[] = { 0x0f, 0x05 };
	const struct sf_task_look look = look_behind(int80, "162 0x11 0x12 0x13 0x14 0x15 0x16");
	struct sf_regs regs;

	(void)state;
	assert_int_equal(look.syscall, SYS_nanosleep);
	sf_task_registers(&look, &regs);
	assert_int_equal(regs.r[3], 0x11); /* ebx */
	assert_int_equal(regs.r[6], 0x16); /* ebp */
	assert_false(sf_reg_known(&regs, 8));
	assert_int_equal(look_behind(syscall, "162 0x11 0x12 0x13 0x14 0x15 0x16").syscall, SYS_sync);
	assert_int_equal(look_behind(int80, "0 0x4116d000 0 0 0 0 0").syscall, SYS_restart_syscall);
	assert_int_equal(look_behind(int80, "7 0xffffffffffffffff 0x4116d000 0 0 0 0").syscall, SYS_wait4);
	assert_int_equal(look_behind(int80, "7 0xffffffffffffffff 0 0 0 0 0").syscall, SYS_wait4);
	assert_int_equal(look_behind(int80, "117 12 0 0 0 0 0").syscall, SF_SYSCALL_UNTOLD);
	assert_int_equal(look_behind(int80, "247 0x7f0000000000 1 1 0 0 0").syscall, SYS_io_getevents);
}

/* As the kernel's struct pt_regs: r15 to r8 (with bp and bx), ax, cx, dx, si, di, orig_ax, ip, cs, flags, sp, ss. */
static void test_saved_i386(void **state)
{
	static const uint8_t int80[] = { 0xcd, 0x80 };
	uint64_t saved[SF_TASK_SAVED] = { [4] = 0x16, [5] = 0x11, [11] = 0x12, [12] = 0x13, [13] = 0x14, [14] = 0x15, [15] = 162,
					  [16] = (uint64_t)(uintptr_t)int80 + 2, [17] = 0x33, [19] = 0x7ffd00001000 };
	struct sf_task_look look;
	struct sf_regs regs;

	(void)state;
	assert_true(sf_task_saved(getpid(), saved, SF_STATE_BLOCKED, &look, &regs));
	assert_int_equal(look.syscall, SYS_nanosleep);
	for (unsigned i = 0; i < 6; i++)
		assert_int_equal(look.args[i], 0x11 + i);
	saved[11] = saved[16]; /* `syscall` puts the pc there */
	assert_true(sf_task_saved(getpid(), saved, SF_STATE_BLOCKED, &look, &regs));
	assert_int_equal(look.syscall, SYS_sync);
	assert_int_equal(look.args[0], 0x15);
}
#endif

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_words),
		cmocka_unit_test(test_being_woken),
		cmocka_unit_test(test_page_fault),
#ifdef __x86_64__
		cmocka_unit_test(test_i386),
		cmocka_unit_test(test_saved_i386),
#endif
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
