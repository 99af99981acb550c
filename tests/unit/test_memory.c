/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Kept memory of a process serves a still only if it was read after that still was taken, or shortly before, if the
 * process has ended. The clock and what the system reads are replaced (--wrap): a memory in which each byte says when and
 * of which process it was read.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "target/memory.h"

#define LINE SF_MEMORY_LINE
#define HOLE UINT64_C(0x900000)   /* nothing is there, a page long */
#define MS UINT64_C(1000000)
#define ENDED 99                  /* a thread through which nothing can be read */

static struct sf_memory *memory;
static uint64_t now_ns;
static unsigned n_reads, n_live_ids;
static int32_t live_id;
static uint8_t content;
static bool is_over;              /* process 1 has ended */
static bool is_unmapped;          /* there is nothing at 0x5000 */

uint64_t __wrap_sf_now_ns(void);
size_t __wrap_sf_process_read(int32_t pid, void *ret, uint64_t addr, size_t size);
int32_t __wrap_sf_process_live_id(int32_t pid);
bool __wrap_sf_process_is_over(int32_t pid);

uint64_t __wrap_sf_now_ns(void)
{
	return now_ns;
}

size_t __wrap_sf_process_read(int32_t pid, void *ret, uint64_t addr, size_t size)
{
	uint8_t *bytes = ret;

	n_reads++;
	memset(bytes, 0xee, size); /* what is left behind where reading fails */
	errno = ESRCH;
	if (pid == ENDED || (is_over && pid == 1))
		return 0;
	errno = EFAULT;
	for (size_t i = 0; i < size; i++) {
		if ((addr + i >= HOLE && addr + i < HOLE + 4096) || (is_unmapped && addr + i >= 0x5000 && addr + i < 0x6000))
			return i;
		bytes[i] = (uint8_t)(content + pid + (addr + i));
	}
	return size;
}

/* Of a process whose first thread has ended: another one. */
int32_t __wrap_sf_process_live_id(int32_t pid)
{
	n_live_ids++;
	return pid == ENDED ? live_id : pid;
}

bool __wrap_sf_process_is_over(int32_t pid)
{
	return is_over && pid == 1;
}

static int set_up(void **state)
{
	(void)state;
	is_over = is_unmapped = false;
	now_ns = 1000;
	n_reads = n_live_ids = 0;
	live_id = ENDED;
	content = 7;
	memory = sf_memory_create();
	return memory ? 0 : -1;
}

static int tear_down(void **state)
{
	(void)state;
	sf_memory_destroy(memory);
	return 0;
}

/* The bytes read of thread 1 while the memory was as `when` says. */
static void check(uint64_t addr, size_t size, uint8_t when)
{
	uint8_t bytes[3 * LINE];

	assert_true(sf_memory_read(memory, bytes, addr, size));
	for (size_t i = 0; i < size; i++)
		assert_int_equal(bytes[i], (uint8_t)(when + 1 + addr + i));
}

static void test_what_is_near_is_read_once(void **state)
{
	(void)state;
	sf_memory_turn(memory, 1, 1, 500);
	for (unsigned i = 0; i < 100; i++)
		check(0x5000 + i * 8, 8, 7);
	assert_int_equal(n_reads, 1);
	check(0x5000 + LINE - 3, 8, 7);
	assert_int_equal(n_reads, 2);
	check(0x5000, 0, 7);
	check(0x5001, 3 * LINE - 1, 7); /* too long to be kept */
	assert_int_equal(n_reads, 3);
}

static void test_never_older_than_the_still(void **state)
{
	(void)state;
	sf_memory_turn(memory, 1, 1, 999);
	check(0x5000, 8, 7);
	content = 8;
	now_ns = 2000;
	sf_memory_turn(memory, 1, 1, 1000); /* taken before it was read, or just then */
	check(0x5000, 8, 7);
	sf_memory_turn(memory, 1, 1, 1001);
	check(0x5000, 8, 8);
	sf_memory_turn(memory, 1, 1, 900); /* an older one again: what is newer is as good */
	check(0x5000, 8, 8);
	assert_int_equal(n_reads, 2);
}

/* Of a process that has ended it is what was kept: nothing changes there. */
static void test_what_is_read_anew(void **state)
{
	uint8_t byte;

	(void)state;
	sf_memory_turn(memory, 1, 1, 500);
	check(0x5000, 8, 7);
	content = 8;
	assert_true(sf_memory_read_anew(memory, &byte, 0x5000, 1));
	assert_int_equal(byte, 8 + 1);
	check(0x5000, 8, 7);
	is_unmapped = true;
	assert_false(sf_memory_read_anew(memory, &byte, 0x5000, 1));
	is_over = true;
	assert_true(sf_memory_read_anew(memory, &byte, 0x5000, 1));
	assert_int_equal(byte, 7 + 1);
}

static void test_each_process_has_its_own(void **state)
{
	uint8_t byte;

	(void)state;
	sf_memory_turn(memory, 1, 1, 500);
	check(0x5000, 8, 7);
	sf_memory_turn(memory, 2, 2, 500);
	assert_true(sf_memory_read(memory, &byte, 0x5000, 1));
	assert_int_equal(byte, (uint8_t)(7 + 2 + 0x5000));
	/* Another thread of the same process sees the same memory. */
	sf_memory_turn(memory, 2, 3, 500);
	assert_true(sf_memory_read(memory, &byte, 0x5000, 1));
	assert_int_equal(byte, (uint8_t)(7 + 2 + 0x5000));
	assert_int_equal(n_reads, 2);
}

static void test_a_thread_that_ended(void **state)
{
	uint8_t byte;

	(void)state;
	sf_memory_turn(memory, 1, ENDED, 500);
	check(0x5000, 8, 7);
	check(0x5001, 3 * LINE - 1, 7);
	assert_int_equal(n_reads, 4);
	/* It was the first one: there is no other. */
	sf_memory_turn(memory, ENDED, ENDED, 500);
	assert_false(sf_memory_read(memory, &byte, 0x5000, 1));
	assert_int_equal(n_reads, 5);
	/* Until another one is found. */
	live_id = 1;
	check(0x5000, 8, 7);
	check(0x5001, 3 * LINE - 1, 7);
	assert_int_equal(n_live_ids, 3);
}

/* What was read a moment before its end serves its last stills. */
static void test_a_process_that_ended(void **state)
{
	uint8_t bytes[2 * LINE];

	(void)state;
	now_ns = 1000 * MS;
	sf_memory_turn(memory, 1, 1, 999 * MS);
	check(0x5000, 8, 7);
	now_ns = 1010 * MS;
	content = 8;
	sf_memory_turn(memory, 1, 1, 1009 * MS);
	check(0x7000, 8, 8);
	is_over = true;
	now_ns = 1020 * MS;
	sf_memory_turn(memory, 1, 1, 1300 * MS);
	for (uint64_t i = 0; i < 5000; i++) /* also in the places of these lines, which stay */
		assert_false(sf_memory_read(memory, bytes, 0x1000000 + i * LINE, 1));
	check(0x5000, 8, 7);
	check(0x5000 + 100, 8, 7);
	check(0x7000, 8, 8);
	assert_false(sf_memory_read(memory, bytes, 0x9000, 8)); /* never read */
	assert_false(sf_memory_read(memory, bytes, 0x7000, sizeof(bytes))); /* too long to be kept */
	sf_memory_turn(memory, 1, 1, 1301 * MS); /* 0.3 s before this still */
	assert_false(sf_memory_read(memory, bytes, 0x5000, 8));
	check(0x7000, 8, 8);
}

/* Lines that have the same place in the cache: one before is kept, too. */
static void test_lines_of_one_place(void **state)
{
	const uint64_t apart = 2000 * LINE; /* so many that others have the places of most */
	uint8_t byte;
	unsigned n = 0;

	(void)state;
	sf_memory_turn(memory, 1, 1, 999);
	for (uint64_t i = 0; i < 400; i++) {
		check(0x1000000 + i * LINE, 8, 7);
		check(0x1000000 + apart + i * LINE, 8, 7);
	}
	is_over = true;
	for (unsigned round = 0; round < 3; round++) {
		sf_memory_turn(memory, 1, 1, 2000 + round);
		n = 0;
		for (uint64_t i = 0; i < 400; i++) {
			n += sf_memory_read(memory, &byte, 0x1000000 + i * LINE, 1) && byte == (uint8_t)(7 + 1 + i * LINE);
			n += sf_memory_read(memory, &byte, 0x1000000 + apart + i * LINE, 1) && byte == (uint8_t)(7 + 1 + apart + i * LINE);
		}
		assert_true(n > 700); /* one place alone would have 400 */
	}
}

/* Not while it lives, where the memory is gone; nor in another process, nor of a place that was used for other memory meanwhile. */
static void test_what_a_line_was_serves_nothing_else(void **state)
{
	uint8_t byte;

	(void)state;
	sf_memory_turn(memory, 1, 1, 999);
	check(0x5000, 8, 7);
	is_unmapped = true;
	sf_memory_turn(memory, 1, 1, 2000);
	assert_false(sf_memory_read(memory, &byte, 0x5000, 1));
	sf_memory_turn(memory, 1, ENDED, 2000);
	check(HOLE - LINE, 8, 7);
	sf_memory_turn(memory, 2, 2, 2000);
	assert_false(sf_memory_read(memory, &byte, HOLE, 1));
	for (uint64_t i = 0; i < 5000; i++)
		assert_true(sf_memory_read(memory, &byte, 0x1000000 + i * LINE, 1));
	is_over = true;
	sf_memory_turn(memory, 1, 1, 3000);
	assert_false(sf_memory_read(memory, &byte, HOLE - LINE, 1));
	assert_false(sf_memory_read(memory, &byte, HOLE, 1));
	for (uint64_t i = 0; i < 5000; i++)
		assert_false(sf_memory_read(memory, &byte, 0x1000000 + i * LINE, 1));
}

/* A stack runs on to its process's end. */
static void test_stacks_are_not_kept(void **state)
{
	uint8_t byte;

	(void)state;
	sf_memory_turn(memory, 1, 1, 999);
	check(0x5000, 8, 7);
	is_over = true;
	sf_memory_turn(memory, 1, 1, 2000);
	sf_memory_set_stack(memory, 0x5000, 0x6000);
	assert_false(sf_memory_read(memory, &byte, 0x5000, 1));
}

static void test_where_nothing_is(void **state)
{
	uint8_t bytes[16] = { 0 };

	(void)state;
	sf_memory_turn(memory, 1, 1, 500);
	assert_false(sf_memory_read(memory, bytes, HOLE, 8));
	assert_false(sf_memory_read(memory, bytes, HOLE, 8));
	assert_int_equal(n_reads, 2); /* it may have come meanwhile */
	assert_int_equal(n_live_ids, 0);
	for (unsigned i = 0; i < 2000; i++)
		check(0x100000 + i * LINE, 8, 7);
	for (unsigned i = 0; i < 4; i++)
		assert_false(sf_memory_read(memory, bytes, HOLE + i * 1024, 8));
	for (unsigned i = 2000; i-- > 0;)
		check(0x100000 + i * LINE, 8, 7);
	assert_false(sf_memory_read(memory, bytes, HOLE - 8, 16));
	assert_false(sf_memory_read(memory, bytes, HOLE + 4088, 16));
	check(HOLE - 8, 8, 7);
	check(HOLE + 4096, 8, 7);
}

/* More than there is room for: what is kept is what was read, wherever it is put. */
static void test_many_lines(void **state)
{
	(void)state;
	sf_memory_turn(memory, 1, 1, 500);
	for (unsigned round = 0; round < 3; round++) {
		for (uint64_t i = 0; i < 5000; i++)
			check(0x100000 + (i * 7919 % 5000) * 200, 8, 7);
	}
}

int main(void)
{
#define TEST(fn) cmocka_unit_test_setup_teardown(fn, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		TEST(test_what_is_near_is_read_once),
		TEST(test_never_older_than_the_still),
		TEST(test_what_is_read_anew),
		TEST(test_each_process_has_its_own),
		TEST(test_a_thread_that_ended),
		TEST(test_a_process_that_ended),
		TEST(test_what_a_line_was_serves_nothing_else),
		TEST(test_lines_of_one_place),
		TEST(test_stacks_are_not_kept),
		TEST(test_where_nothing_is),
		TEST(test_many_lines),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
