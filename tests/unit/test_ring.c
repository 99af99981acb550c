/* SPDX-License-Identifier: Apache-2.0 */
/* The ring: wrapping, filling up, abandoning, and two threads that check every byte. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <pthread.h>
#include <sched.h>
#include <string.h>
#include <cmocka.h>

#include "frozen/output/ring.h"

#define SIZE 4096

static _Alignas(8) uint8_t bytes[SIZE];
static struct sf_ring ring;

/* A record whose payload repeats the low byte of its number. Also run by a thread, so no asserts. */
static bool write_record(uint32_t number, size_t size, size_t reserve)
{
	uint8_t *record = sf_ring_reserve(&ring, reserve);

	if (!record)
		return false;
	((struct sf_record_header *)record)->type = 1;
	((struct sf_record_header *)record)->reserved = (uint16_t)number;
	memset(record + sizeof(struct sf_record_header), (int)(number & 0xff),
	       size - sizeof(struct sf_record_header));
	sf_ring_commit(&ring, size);
	return true;
}

static size_t read_record(uint32_t number)
{
	const struct sf_record_header *header = sf_ring_peek(&ring);
	const uint8_t *payload = (const uint8_t *)(header + 1);

	if (!header)
		return 0;
	assert_int_equal((uintptr_t)header % 8, 0);
	assert_int_equal(header->type, 1);
	assert_int_equal(header->reserved, (uint16_t)number);
	if (header->size > 16)
		assert_int_equal(payload[0], number & 0xff);
	return header->size;
}

static void empty_at_first(void **state)
{
	(void)state;
	sf_ring_init(&ring, bytes, SIZE);
	assert_null(sf_ring_peek(&ring));
	sf_ring_release(&ring); /* nothing to release */
	assert_null(sf_ring_peek(&ring));
}

static void sizes_are_rounded_with_zeros(void **state)
{
	const struct sf_record_header *header;
	(void)state;

	memset(bytes, 0xee, sizeof(bytes));
	sf_ring_init(&ring, bytes, SIZE);
	assert_true(write_record(5, 17, 100));
	header = sf_ring_peek(&ring);
	assert_int_equal(header->size, 24);
	assert_int_equal(((const uint8_t *)header)[16], 5);
	for (unsigned i = 17; i < 24; i++)
		assert_int_equal(((const uint8_t *)header)[i], 0);
}

static void a_full_ring_refuses_and_recovers(void **state)
{
	unsigned n = 0;
	(void)state;

	sf_ring_init(&ring, bytes, SIZE);
	while (write_record(n, 64, 64))
		n++;
	assert_int_equal(n, SIZE / 64);
	assert_null(sf_ring_reserve(&ring, 8));
	assert_int_equal(read_record(0), 64);
	sf_ring_release(&ring);
	assert_true(write_record(n, 64, 64));
	for (unsigned i = 1; i <= n; i++) {
		assert_int_equal(read_record(i), 64);
		sf_ring_release(&ring);
	}
	assert_null(sf_ring_peek(&ring));
}

static void bad_sizes_are_refused(void **state)
{
	(void)state;
	sf_ring_init(&ring, bytes, SIZE);
	assert_null(sf_ring_reserve(&ring, 0));
	assert_null(sf_ring_reserve(&ring, 7));
	assert_null(sf_ring_reserve(&ring, SIZE + 1));
	assert_null(sf_ring_reserve(&ring, SIZE_MAX));
	assert_non_null(sf_ring_reserve(&ring, SIZE));
	sf_ring_commit(&ring, 0);
	assert_null(sf_ring_peek(&ring));
	assert_non_null(sf_ring_reserve(&ring, 64));
	sf_ring_commit(&ring, 65); /* more than was reserved: nothing is published */
	assert_null(sf_ring_peek(&ring));
	sf_ring_commit(&ring, 8); /* no reservation under way */
	assert_null(sf_ring_peek(&ring));
}

/* Reserving past the end and then using little must still leave no hole that the reader trips over. */
static void records_never_wrap(void **state)
{
	(void)state;
	sf_ring_init(&ring, bytes, SIZE);
	for (uint32_t number = 0; number < 10000; number++) {
		const size_t reserve = 8 + number * 37 % 2000, size = 8 + number * 37 % 2000 / (1 + number % 3);
		const struct sf_record_header *header;

		assert_true(write_record(number, size, reserve));
		header = sf_ring_peek(&ring);
		assert_true((const uint8_t *)header + header->size <= bytes + SIZE);
		assert_int_equal(read_record(number), (size + 7) & ~(size_t)7);
		sf_ring_release(&ring);
		assert_null(sf_ring_peek(&ring));
	}
}

static void abandoning_leaves_no_trace(void **state)
{
	(void)state;
	sf_ring_init(&ring, bytes, SIZE);
	for (uint32_t number = 0; number < 1000; number++) {
		assert_non_null(sf_ring_reserve(&ring, 1500));
		sf_ring_commit(&ring, 0);
		assert_null(sf_ring_peek(&ring));
		assert_true(write_record(number, 1000, 1500));
		assert_int_equal(read_record(number), 1000);
		sf_ring_release(&ring);
	}
}

#define N_RECORDS 200000

static size_t size_of(uint32_t number)
{
	return 12 + number * 2654435761u % 300;
}

static void *write_all(void *arg)
{
	uint32_t number = 0;
	(void)arg;

	/* Both sides give way when they cannot go on: there may be one CPU for the two of them. */
	while (number < N_RECORDS) {
		if (write_record(number, size_of(number), 400))
			number++;
		else
			sched_yield();
	}
	return NULL;
}

static bool is_record(const struct sf_record_header *header, uint32_t number)
{
	const uint8_t *payload = (const uint8_t *)(header + 1);
	const size_t size = size_of(number);

	if (header->type != 1 || header->reserved != (uint16_t)number ||
	    header->size != ((size + 7) & ~(size_t)7))
		return false;
	for (size_t i = 0; i < size - sizeof(*header); i++) {
		if (payload[i] != (number & 0xff))
			return false;
	}
	return true;
}

static void two_threads_agree_on_every_byte(void **state)
{
	const struct sf_record_header *header;
	pthread_t writer;
	(void)state;

	sf_ring_init(&ring, bytes, SIZE);
	assert_int_equal(pthread_create(&writer, NULL, write_all, NULL), 0);
	for (uint32_t number = 0; number < N_RECORDS; number++) {
		while (!(header = sf_ring_peek(&ring)))
			sched_yield();
		assert_true(is_record(header, number));
		sf_ring_release(&ring);
	}
	pthread_join(writer, NULL);
	assert_null(sf_ring_peek(&ring));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(empty_at_first),
		cmocka_unit_test(sizes_are_rounded_with_zeros),
		cmocka_unit_test(a_full_ring_refuses_and_recovers),
		cmocka_unit_test(bad_sizes_are_refused),
		cmocka_unit_test(records_never_wrap),
		cmocka_unit_test(abandoning_leaves_no_trace),
		cmocka_unit_test(two_threads_agree_on_every_byte),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
