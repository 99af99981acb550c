/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A wanted place is there after one request; a place that was not wanted, or cannot be read, is not; and all that again
 * after it was forgotten. What is read anew is as it is.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <cmocka.h>

#include "agent/service/runtime_memory.h"
#include "frozen/signal/handler.h"

#define PAGE 4096u
#define SIZE (SF_BATCH_READ_LINES * SF_BATCH_READ_LINE + 4 * PAGE)

static struct sf_own_memory own;
static struct sf_batch_read *batch;
static uint8_t *bytes;     /* the last page of SIZE cannot be read */

static uint8_t value(size_t i)
{
	return (uint8_t)(i * 7 + i / 251);
}

static int set_up(void **state)
{
	(void)state;
	bytes = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (bytes == MAP_FAILED || !sf_own_memory_probe(&own) || !own.gathers)
		return -1;
	for (size_t i = 0; i < SIZE; i++)
		bytes[i] = value(i);
	return mprotect(bytes + SIZE - PAGE, PAGE, PROT_NONE);
}

static int tear_down(void **state)
{
	(void)state;
	munmap(bytes, SIZE);
	sf_own_memory_close(&own);
	return 0;
}

static int make(void **state)
{
	(void)state;
	batch = calloc(1, sizeof(*batch));
	if (batch)
		batch->access = &own;
	return batch ? 0 : -1;
}

static int destroy(void **state)
{
	(void)state;
	free(batch);
	return 0;
}

static uint64_t at(size_t i)
{
	return (uint64_t)(uintptr_t)bytes + i;
}

static void assert_read(size_t i, size_t size)
{
	uint8_t read[256];

	assert_true(size <= sizeof(read));
	assert_true(sf_batch_read_at(batch, read, at(i), size));
	for (size_t k = 0; k < size; k++)
		assert_int_equal(read[k], value(i + k));
}

static void assert_not_there(size_t i, size_t size)
{
	uint8_t read[256];

	assert_true(size <= sizeof(read));
	assert_false(sf_batch_read_at(batch, read, at(i), size));
}

/* Pieces here and there, next to each other, twice the same, over the edge of lines, and nothing. */
static void test_pieces(void **state)
{
	uint8_t read;

	(void)state;
	sf_batch_read_want(batch, at(70000), 8);
	sf_batch_read_want(batch, at(100), 200);
	sf_batch_read_want(batch, at(120), 8);
	sf_batch_read_want(batch, at(320), 1);
	sf_batch_read_want(batch, at(5000), 0);
	assert_not_there(70000, 8); /* it has not been fetched yet */
	sf_batch_read_all(batch);
	assert_read(70000, 8);
	assert_read(100, 200);
	assert_read(64, 256);
	assert_read(320, 64);
	assert_not_there(63, 8);
	assert_not_there(380, 8);
	assert_not_there(5000, 1);
	assert_int_equal(batch->n, 6);

	/* It is as it was when it was fetched, until that is forgotten. */
	bytes[110]++;
	sf_batch_read_want(batch, at(110), 1);
	sf_batch_read_all(batch);
	assert_read(110, 1);
	sf_batch_read_forget(batch);
	assert_not_there(110, 1);
	sf_batch_read_want(batch, at(110), 1);
	sf_batch_read_all(batch);
	bytes[110]--;
	assert_true(sf_batch_read_at(batch, &read, at(110), 1));
	assert_int_equal(read, (uint8_t)(value(110) + 1));
}

/* The bytes before it are there, the bytes after it can be wanted anew. */
static void test_unreadable(void **state)
{
	static const uint64_t bad[] = { 8, UINT64_MAX - 3, UINT64_C(1) << 63 };

	(void)state;
	sf_batch_read_want(batch, at(0), 128);
	sf_batch_read_want(batch, at(SIZE - PAGE - 64), 128);
	sf_batch_read_want(batch, at(1000), 8);
	sf_batch_read_all(batch);
	assert_read(0, 128);
	assert_read(SIZE - PAGE - 64, 64);
	assert_not_there(SIZE - PAGE, 1);
	assert_not_there(1000, 8);
	sf_batch_read_want(batch, at(1000), 8);
	sf_batch_read_all(batch);
	assert_read(1000, 8);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		uint64_t read;

		sf_batch_read_want(batch, bad[i], 2);
		sf_batch_read_want(batch, bad[i], 64);
		sf_batch_read_all(batch);
		assert_false(sf_batch_read_at(batch, &read, bad[i], 2));
	}
	assert_read(1000, 8);
}

/* Far more than one request takes; and more than there is room for. */
static void test_many(void **state)
{
	(void)state;
	for (size_t i = 0; i < SF_BATCH_READ_LINES / 2; i++)
		sf_batch_read_want(batch, at(2 * i * SF_BATCH_READ_LINE), 8); /* no two in one piece */
	sf_batch_read_all(batch);
	for (size_t i = 0; i < SF_BATCH_READ_LINES; i++) {
		if (i % 2)
			assert_not_there(i * SF_BATCH_READ_LINE, 8);
		else
			assert_read(i * SF_BATCH_READ_LINE, 64);
	}
	sf_batch_read_want(batch, at(0), SF_BATCH_READ_LINES * SF_BATCH_READ_LINE);
	sf_batch_read_want(batch, at(SF_BATCH_READ_LINES * SF_BATCH_READ_LINE), 64);
	sf_batch_read_all(batch);
	for (size_t i = 0; i < SF_BATCH_READ_LINES; i++)
		assert_read(i * SF_BATCH_READ_LINE, 64);
	assert_not_there(SF_BATCH_READ_LINES * SF_BATCH_READ_LINE, 1);
	sf_batch_read_forget(batch);
	assert_not_there(0, 1);
	sf_batch_read_want(batch, at(SF_BATCH_READ_LINES * SF_BATCH_READ_LINE), 64);
	sf_batch_read_all(batch);
	assert_read(SF_BATCH_READ_LINES * SF_BATCH_READ_LINE, 64);
}

/* Memory of runtimes is as it was when it was read first, but not for who reads it anew. */
static void test_read_anew(void **state)
{
	const struct sf_process process = { 0 };
	struct sf_runtime_memory *memory;
	struct sf_reader reader, anew;
	struct sf_prefetch ahead;
	uint8_t read;

	(void)state;
	sf_handler.code.memory = own;
	memory = sf_runtime_memory_create(&process);
	assert_non_null(memory);
	reader = sf_runtime_memory_reader(memory);
	anew = sf_reader_anew(&reader);
	ahead = sf_runtime_memory_prefetch(memory);
	sf_prefetch_want(&ahead, at(10), 1);
	sf_prefetch_fetch(&ahead);
	assert_true(sf_read(&reader, &read, at(70000), 1)); /* one that was not wanted */
	for (size_t i = 10; i <= 70000; i += 70000 - 10) {
		bytes[i]++;
		assert_true(sf_read(&reader, &read, at(i), 1));
		assert_int_equal(read, value(i));
		assert_true(sf_read(&anew, &read, at(i), 1));
		assert_int_equal(read, (uint8_t)(value(i) + 1));
		bytes[i]--;
	}
	assert_false(sf_read(&anew, &read, at(SIZE - PAGE), 1));
	sf_runtime_memory_destroy(memory);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_pieces, make, destroy),
		cmocka_unit_test_setup_teardown(test_unreadable, make, destroy),
		cmocka_unit_test_setup_teardown(test_many, make, destroy),
		cmocka_unit_test(test_read_anew),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
