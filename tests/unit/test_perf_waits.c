/* SPDX-License-Identifier: Apache-2.0 */
/* The causes of waits, by the kernel's frames: chains as a kernel writes them, with functions at made-up addresses. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <cmocka.h>

#include "capture/perf/waits.h"

/* The i-th function is at BASE + i * SIZE. */
#define BASE UINT64_C(0xffffffff81000000)
#define SIZE 0x100

enum function {
	SCHEDULE,
	IO_SCHEDULE,
	FOLIO_WAIT,
	VFS_READ,
	KSYS_READ,
	DO_SYSCALL,
	ENTRY,
	X64_FUTEX,
	DO_FUTEX,
	X64_FSYNC,
	EXC_FAULT,
	ASM_FAULT,
	RWSEM,
	SIGNAL_STOP,
	FREEZER_TRAP,
	REFRIGERATOR,
	GET_SIGNAL,
	TASK_DEAD,
	X64_NONE,
	N_FUNCTIONS
};
static const char *const functions[N_FUNCTIONS] = {
	"schedule", "io_schedule", "folio_wait_bit_common", "vfs_read", "ksys_read", "do_syscall_64", "entry_SYSCALL_64_after_hwframe",
	"__x64_sys_futex", "do_futex", "__x64_sys_fsync", "exc_page_fault", "asm_exc_page_fault", "rwsem_down_read_slowpath", "do_signal_stop",
	"do_freezer_trap", "__refrigerator", "get_signal", "do_task_dead", "__x64_sys_no_such_call",
};

static struct sf_perf_waits waits;

static int set_up(void **state)
{
	struct sf_kernel_symbols symbols = { 0 };
	char line[100];

	(void)state;
	for (unsigned i = 0; i < N_FUNCTIONS; i++) {
		snprintf(line, sizeof(line), "%lx T %s", (unsigned long)(BASE + i * SIZE), functions[i]);
		assert_true(sf_kernel_symbols_add(&symbols, line));
	}
	snprintf(line, sizeof(line), "%lx T last", (unsigned long)(BASE + N_FUNCTIONS * SIZE));
	assert_true(sf_kernel_symbols_add(&symbols, line));
	sf_kernel_symbols_sort(&symbols);
	assert_true(sf_perf_waits_take(&waits, &symbols));
	sf_kernel_symbols_deinit(&symbols);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	sf_perf_waits_deinit(&waits);
	return 0;
}

/* Innermost first; each return address is the last byte of its function and one: the call was its last instruction. */
static struct sf_perf_wait wait_of(size_t n, const enum function *chain)
{
	struct sf_perf_wait wait;
	uint64_t addresses[16];

	for (size_t i = 0; i < n; i++)
		addresses[i] = BASE + chain[i] * SIZE + (i ? SIZE : 5);
	sf_perf_waits_find(&waits, addresses, n, &wait);
	return wait;
}
#define WAIT_OF(...) wait_of(sizeof((enum function[]){ __VA_ARGS__ }) / sizeof(enum function), (enum function[]){ __VA_ARGS__ })

static void test_calls(void **state)
{
	struct sf_perf_wait wait = WAIT_OF(SCHEDULE, DO_FUTEX, X64_FUTEX, DO_SYSCALL, ENTRY);

	(void)state;
	assert_int_equal(wait.syscall, SYS_futex);
	assert_int_equal(wait.cause, SF_CAUSE_NONE);
	wait = WAIT_OF(SCHEDULE, DO_FUTEX, DO_SYSCALL, ENTRY); /* jumped to */
	assert_int_equal(wait.syscall, SYS_futex);
	wait = WAIT_OF(SCHEDULE, VFS_READ, KSYS_READ, DO_SYSCALL, ENTRY);
	assert_int_equal(wait.syscall, SYS_read);
	wait = WAIT_OF(SCHEDULE, X64_NONE, DO_SYSCALL, ENTRY);
	assert_int_equal(wait.syscall, SF_SYSCALL_UNTOLD);
}

static void test_causes(void **state)
{
	struct sf_perf_wait wait = WAIT_OF(SCHEDULE, IO_SCHEDULE, FOLIO_WAIT, X64_FSYNC, DO_SYSCALL, ENTRY);

	(void)state;
	assert_int_equal(wait.syscall, SYS_fsync);
	assert_int_equal(wait.cause, SF_CAUSE_BLOCK_IO);
	wait = WAIT_OF(SCHEDULE, RWSEM, EXC_FAULT, ASM_FAULT);
	assert_int_equal(wait.syscall, SF_SYSCALL_FAULT);
	assert_int_equal(wait.cause, SF_CAUSE_KERNEL_LOCK);
	/* A fault inside of a call: on a page that the call writes to. */
	wait = WAIT_OF(SCHEDULE, IO_SCHEDULE, FOLIO_WAIT, EXC_FAULT, ASM_FAULT, VFS_READ, KSYS_READ, DO_SYSCALL, ENTRY);
	assert_int_equal(wait.syscall, SYS_read);
	assert_int_equal(wait.cause, SF_CAUSE_BLOCK_IO);
	assert_false(wait.is_stopped || wait.has_ended);
}

static void test_stops_and_ends(void **state)
{
	(void)state;
	assert_true(WAIT_OF(SCHEDULE, SIGNAL_STOP, DO_SYSCALL, ENTRY).is_stopped);
	assert_true(WAIT_OF(SCHEDULE, FREEZER_TRAP, DO_SYSCALL, ENTRY).is_stopped);
	assert_true(WAIT_OF(SCHEDULE, REFRIGERATOR, DO_SYSCALL, ENTRY).is_stopped);
	assert_true(WAIT_OF(SCHEDULE, GET_SIGNAL, DO_SYSCALL, ENTRY).is_stopped);
	/* The memory of a process that a signal ends is written to a file. */
	assert_false(WAIT_OF(SCHEDULE, IO_SCHEDULE, FOLIO_WAIT, GET_SIGNAL, DO_SYSCALL, ENTRY).is_stopped);
	assert_true(WAIT_OF(SCHEDULE, TASK_DEAD).has_ended);
}

static void test_without_names(void **state)
{
	const struct sf_perf_waits none = { 0 };
	struct sf_perf_wait wait;

	(void)state;
	sf_perf_waits_find(&none, (uint64_t[]){ BASE, BASE + SIZE }, 2, &wait);
	assert_int_equal(wait.syscall, SF_SYSCALL_UNTOLD);
	sf_perf_waits_find(&waits, NULL, 0, &wait);
	assert_int_equal(wait.syscall, SF_SYSCALL_UNTOLD);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_calls),
		cmocka_unit_test(test_causes),
		cmocka_unit_test(test_stops_and_ends),
		cmocka_unit_test(test_without_names),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
