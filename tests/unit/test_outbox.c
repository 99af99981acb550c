/* SPDX-License-Identifier: Apache-2.0 */
/* The outbox: wrapping, running full, many writers, and memory in which anything may stand. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "apart.h"
#include "form.h"
#include "frozen/output/outbox.h"
#include "sanitizer.h"

#define RING 4096
#define HEADER sizeof(struct sf_record_header)

static _Alignas(64) uint8_t memory[sizeof(struct sf_outbox_header) + RING + 64];
static struct sf_outbox_header *box;
static _Alignas(8) uint8_t record[RING];
static const struct sf_record_header *const header = (const struct sf_record_header *)record;

static int fresh(void **state)
{
	(void)state;
	memset(memory, 0, sizeof(memory));
	memset(memory + sizeof(memory) - 64, 0xa5, 64); /* nobody may come here */
	box = sf_outbox_init(memory, RING, 7);
	return 0;
}

static int guarded(void **state)
{
	(void)state;
	for (unsigned i = 1; i <= 64; i++) {
		if (memory[sizeof(memory) - i] != 0xa5)
			return -1;
	}
	return 0;
}

static int get(void)
{
	return sf_outbox_get(box, RING, record, sizeof(record));
}

static bool put(uint16_t type, size_t size, uint8_t byte)
{
	uint8_t bytes[RING];
	const struct sf_outbox_piece pieces[] = { { bytes, size / 3 }, { bytes, size - size / 3 } };

	memset(bytes, byte, sizeof(bytes));
	return sf_outbox_put(box, type, pieces, 2);
}

static void assert_record(uint16_t type, size_t size, uint8_t byte)
{
	assert_int_equal(get(), 1);
	assert_int_equal(header->type, type);
	assert_int_equal(header->reserved, 0);
	assert_int_equal(header->size, (HEADER + size + 7) / 8 * 8);
	for (size_t i = 0; i < header->size - HEADER; i++)
		assert_int_equal(record[HEADER + i], i < size ? byte : 0);
}

static void test_empty(void **state)
{
	(void)state;
	assert_int_equal(box->magic, SF_OUTBOX_MAGIC);
	assert_int_equal(box->version, 7);
	assert_int_equal(box->size, RING);
	assert_int_equal(get(), 0);
}

static void test_sizes_and_wrapping(void **state)
{
	(void)state;
	for (unsigned round = 0; round < 5000; round++) {
		assert_true(put(1 + round % 9, round % 700, (uint8_t)round));
		assert_true(put(3, 5, 0x33));
		assert_record(1 + round % 9, round % 700, (uint8_t)round);
		assert_record(3, 5, 0x33);
		assert_int_equal(get(), 0);
	}
	assert_int_equal(box->lost, 0);
}

static void test_full(void **state)
{
	(void)state;
	for (unsigned i = 0; i < RING / 64; i++)
		assert_true(put(1, 64 - HEADER, (uint8_t)i));
	assert_false(put(1, 0, 0));
	assert_int_equal(box->lost, 1);
	assert_false(put(1, 64, 0));
	assert_int_equal(box->lost, 2);
	assert_record(1, 64 - HEADER, 0);
	assert_true(put(2, 64 - HEADER, 0xee));
	for (unsigned i = 1; i < RING / 64; i++)
		assert_record(1, 64 - HEADER, (uint8_t)i);
	assert_record(2, 64 - HEADER, 0xee);
	assert_int_equal(get(), 0);
	assert_false(put(1, RING - HEADER, 1)); /* empty, but it would wrap around */
}

static void test_as_large_as_the_ring(void **state)
{
	(void)state;
	assert_false(put(1, RING, 1));
	assert_true(put(1, RING - HEADER, 1));
	assert_false(put(1, 0, 1));
	assert_record(1, RING - HEADER, 1);
	assert_int_equal(get(), 0);
}

/* A record whose writer has not finished holds up those behind it, and nothing else. */
static void test_unfinished_is_waited_for(void **state)
{
	(void)state;
	assert_true(put(1, 8, 1));
	box->head += 32;
	assert_true(put(2, 8, 2));
	assert_record(1, 8, 1);
	assert_int_equal(get(), 0);
	memcpy(box->bytes + 16, &(struct sf_record_header){ .size = 32, .type = 9 }, HEADER);
	assert_int_equal(get(), 1);
	assert_int_equal(header->type, 9);
	assert_record(2, 8, 2);
}

static void set_size(uint64_t at, uint32_t size, uint16_t type)
{
	memcpy(box->bytes + at, &(struct sf_record_header){ .size = size, .type = type }, HEADER);
}

static void test_what_cannot_be_a_record(void **state)
{
	static const uint32_t sizes[] = { 1, 7, 12, RING + 8, UINT32_MAX, UINT32_MAX - 7 };

	(void)state;
	for (unsigned i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		set_size(0, sizes[i], 1);
		assert_int_equal(get(), -1);
	}
	set_size(0, 64, 1);
	assert_int_equal(sf_outbox_get(box, RING, record, 56), -1);
	set_size(0, 64, 0);
	set_size(64, 64, 0);
	assert_int_equal(get(), -1); /* two fillers */
	box->tail = RING - 8;
	set_size(RING - 8, 16, 1);
	assert_int_equal(get(), -1); /* beyond the end */
	for (unsigned i = 1; i < 8; i++) {
		box->tail = i;
		assert_int_equal(get(), -1);
	}
	box->tail = UINT64_MAX - 7;
	set_size(RING - 8, 8, 1);
	assert_int_equal(get(), 1);
	assert_int_equal(sf_outbox_get(box, RING - 8, record, sizeof(record)), -1);
	assert_int_equal(sf_outbox_get(box, 0, record, sizeof(record)), -1);
}

/* A reader does not rely on the size in the header. */
static void test_random_memory(void **state)
{
	const unsigned n = is_long_form() ? 5000 : 1200;
	(void)state;

	srand(5);
	for (unsigned round = 0; round < n; round++) {
		for (unsigned i = 0; i < RING; i++)
			box->bytes[i] = rand() % 4 ? 0 : (uint8_t)rand();
		box->size = (uint64_t)rand() << 20;
		box->tail = round % 2 ? (uint64_t)rand() : (uint64_t)(rand() & ~7);
		box->head = (uint64_t)rand();
		for (unsigned i = 0; i < RING / 8 && get() == 1; i++)
			assert_true(header->size >= HEADER && header->size <= sizeof(record));
	}
}

/* --- threads --- */

#define N_WRITERS 4
#define ROUNDS 50000

static _Atomic uint64_t n_put, n_refused;
static _Atomic uint32_t n_writing;

static void *write_often(void *arg)
{
	const uint16_t number = (uint16_t)(uintptr_t)arg;
	uint8_t bytes[256];

	run_apart(number);
	for (uint32_t i = 0; i < ROUNDS; i++) {
		const struct sf_outbox_piece pieces[] = { { &i, sizeof(i) }, { bytes, i % 253 } };

		memset(bytes, (int)(i + number), sizeof(bytes));
		if (sf_outbox_put(box, number, pieces, 2)) {
			n_put++;
		} else {
			n_refused++;
			sched_yield();
		}
	}
	n_writing--;
	return NULL;
}

/* Each writer's records in the order in which it wrote them, and no byte of another in them. */
static void check_record(uint32_t *next)
{
	uint32_t i;

	memcpy(&i, record + HEADER, sizeof(i));
	assert_in_range(header->type, 1, N_WRITERS);
	assert_true(i >= next[header->type]);
	next[header->type] = i + 1;
	assert_int_equal(header->size, (HEADER + sizeof(i) + i % 253 + 7) / 8 * 8);
	for (unsigned j = 0; j < i % 253; j++)
		assert_int_equal(record[HEADER + sizeof(i) + j], (uint8_t)(i + header->type));
}

static void test_many_writers(void **state)
{
	uint32_t next[N_WRITERS + 1] = { 0 };
	pthread_t threads[N_WRITERS];
	uint64_t n_got = 0;

	(void)state;
	n_writing = N_WRITERS;
	for (uintptr_t i = 0; i < N_WRITERS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, write_often, (void *)(i + 1)), 0);
	/* Nearly without a pause, so that records are looked at while they are written: writers may want this CPU. */
	for (unsigned looks = 1, last = false; !last; looks++) {
		last = n_writing == 0;
		if (looks % 128 == 0)
			sched_yield();
		for (; get() == 1; n_got++)
			check_record(next);
	}
	for (unsigned i = 0; i < N_WRITERS; i++)
		assert_int_equal(pthread_join(threads[i], NULL), 0);
	assert_int_equal(get(), 0);
	assert_int_equal(n_got, n_put);
	assert_int_equal(box->lost, n_refused);
	assert_int_equal(n_put + n_refused, N_WRITERS * ROUNDS);
}

/* --- a writer that others overtake between two of its instructions --- */

#ifdef __x86_64__
#include <signal.h>
#include <ucontext.h>

#define TRAP_FLAG 0x100

static volatile unsigned n_steps, overtaken_at;

/* Others write two records, and the reader reads all that is finished. */
static void overtake(int signo, siginfo_t *info, void *context)
{
	ucontext_t *interrupted = context;

	(void)signo;
	(void)info;
	if (++n_steps != overtaken_at)
		return;
	for (unsigned i = 0; i < 2; i++)
		assert_true(put(2, 64 - HEADER, 0x22));
	while (get() == 1)
		;
	interrupted->uc_mcontext.gregs[REG_EFL] &= ~TRAP_FLAG;
}

/* Up to the step at which it is overtaken. */
static bool put_in_steps(void)
{
	const struct sf_outbox_piece piece = { "12345678", 8 };
	bool is_put;

	n_steps = 0;
	__asm__ volatile("pushfq; orq %0, (%%rsp); popfq" : : "i"(TRAP_FLAG) : "memory", "cc");
	is_put = sf_outbox_put(box, 1, &piece, 1);
	__asm__ volatile("pushfq; andq %0, (%%rsp); popfq" : : "i"(~TRAP_FLAG) : "memory", "cc");
	return is_put;
}

/* The head that the writer has read may be behind all that was read since. */
static void test_overtaken_at_each_instruction(void **state)
{
	struct sigaction action = { .sa_sigaction = overtake, .sa_flags = SA_SIGINFO }, before;

	(void)state;
	if (IS_ADDRESS_SANITIZER || IS_THREAD_SANITIZER) /* their own code would be overtaken */
		skip();
	sigaction(SIGTRAP, &action, &before);
	overtaken_at = 0;
	do {
		overtaken_at++;
		assert_true(put_in_steps());
		while (get() == 1)
			;
	} while (n_steps == overtaken_at);
	sigaction(SIGTRAP, &before, NULL);
	assert_true(overtaken_at > 50);
	assert_int_equal(box->lost, 0);
	assert_int_equal(box->head, box->tail);
}
#endif

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, fresh, guarded)
	const struct CMUnitTest tests[] = {
		TEST(test_empty),
		TEST(test_sizes_and_wrapping),
		TEST(test_full),
		TEST(test_as_large_as_the_ring),
		TEST(test_unfinished_is_waited_for),
		TEST(test_what_cannot_be_a_record),
		TEST(test_random_memory),
		TEST(test_many_writers),
#ifdef __x86_64__
		TEST(test_overtaken_at_each_instruction),
#endif
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
