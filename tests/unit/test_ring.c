/* SPDX-License-Identifier: Apache-2.0 */
/* The ring of records that are filled in place: wrapping, filling up, abandoning, and two threads that check every byte. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <pthread.h>
#include <sched.h>
#include <string.h>
#include <cmocka.h>

#include "form.h"
#include "frozen/output/outbox.h"

#define SIZE 4096

static _Alignas(64) uint8_t memory[sizeof(struct sf_outbox_header) + SIZE];
static struct sf_outbox_header *ring;

static void make_ring(void)
{
	memset(memory, 0, sizeof(memory));
	ring = sf_outbox_init(memory, SIZE, 0);
}

/* A record whose payload repeats the low byte of its number. Also run by a thread, so no asserts. */
static bool write_record(uint32_t number, size_t size, size_t reserve)
{
	const size_t header = sizeof(struct sf_record_header);
	uint8_t *record = sf_outbox_reserve(ring, reserve - header);

	if (!record)
		return false;
	memset(record, 0xee, reserve - header);
	memset(record, (int)(number & 0xff), size - header);
	sf_outbox_commit(ring, record, reserve - header, (uint16_t)(1 + number % 1000), size - header);
	return true;
}

static size_t read_record(uint32_t number)
{
	const struct sf_record_header *header = sf_outbox_peek(ring);
	const uint8_t *payload = (const uint8_t *)(header + 1);

	if (!header)
		return 0;
	assert_int_equal((uintptr_t)header % 8, 0);
	assert_int_equal(header->type, 1 + number % 1000);
	assert_int_equal(header->reserved, 0);
	if (header->size > 16)
		assert_int_equal(payload[0], number & 0xff);
	return header->size;
}

static void empty_at_first(void **state)
{
	(void)state;
	make_ring();
	assert_null(sf_outbox_peek(ring));
	sf_outbox_release(ring); /* nothing to release */
	assert_null(sf_outbox_peek(ring));
}

static void sizes_are_rounded_with_zeros(void **state)
{
	const struct sf_record_header *header;
	(void)state;

	make_ring();
	assert_true(write_record(5, 17, 100));
	header = sf_outbox_peek(ring);
	assert_int_equal(header->size, 24);
	assert_int_equal(((const uint8_t *)header)[16], 5);
	for (unsigned i = 17; i < 24; i++)
		assert_int_equal(((const uint8_t *)header)[i], 0);
}

static void a_full_ring_refuses_and_recovers(void **state)
{
	unsigned n = 0;
	(void)state;

	make_ring();
	while (write_record(n, 64, 64))
		n++;
	assert_int_equal(n, SIZE / 64);
	assert_null(sf_outbox_reserve(ring, 0));
	assert_int_equal(read_record(0), 64);
	sf_outbox_release(ring);
	assert_true(write_record(n, 64, 64));
	for (unsigned i = 1; i <= n; i++) {
		assert_int_equal(read_record(i), 64);
		sf_outbox_release(ring);
	}
	assert_null(sf_outbox_peek(ring));
}

static void bad_sizes_are_refused(void **state)
{
	void *whole;
	(void)state;
	make_ring();
	assert_null(sf_outbox_reserve(ring, SIZE));
	assert_null(sf_outbox_reserve(ring, SIZE - sizeof(struct sf_record_header) + 1));
	assert_null(sf_outbox_reserve(ring, UINT64_MAX));
	assert_null(sf_outbox_reserve(ring, UINT64_MAX - sizeof(struct sf_record_header)));
	whole = sf_outbox_reserve(ring, SIZE - sizeof(struct sf_record_header));
	assert_non_null(whole);
	assert_null(sf_outbox_reserve(ring, 0));
	sf_outbox_commit(ring, whole, SIZE - sizeof(struct sf_record_header), SF_OUTBOX_FILLER, 0);
	assert_null(sf_outbox_peek(ring));
	assert_true(write_record(0, 64, 64));
	assert_int_equal(read_record(0), 64);
}

/* Reserving past the end and then using little must still leave no hole that the reader trips over. */
static void records_never_wrap(void **state)
{
	(void)state;
	make_ring();
	for (uint32_t number = 0; number < 10000; number++) {
		const size_t reserve = 8 + number * 37 % 2000, size = 8 + number * 37 % 2000 / (1 + number % 3);
		const struct sf_record_header *header;

		assert_true(write_record(number, size, reserve));
		header = sf_outbox_peek(ring);
		assert_true((const uint8_t *)header + header->size <= memory + sizeof(memory));
		assert_int_equal(read_record(number), (size + 7) & ~(size_t)7);
		sf_outbox_release(ring);
		assert_null(sf_outbox_peek(ring));
	}
}

static void abandoning_leaves_no_trace(void **state)
{
	(void)state;
	make_ring();
	for (uint32_t number = 0; number < 1000; number++) {
		void *room = sf_outbox_reserve(ring, 1500);

		assert_non_null(room);
		memset(room, 0xee, 1500);
		sf_outbox_commit(ring, room, 1500, SF_OUTBOX_FILLER, 0);
		assert_null(sf_outbox_peek(ring));
		assert_true(write_record(number, 1000, 1500));
		assert_int_equal(read_record(number), 1000);
		sf_outbox_release(ring);
	}
}

#define N_RECORDS 40000
#define LONG_N_RECORDS 200000

static uint32_t n_records;

static size_t size_of(uint32_t number)
{
	return 12 + number * 2654435761u % 300;
}

static void *write_all(void *arg)
{
	uint32_t number = 0;
	(void)arg;

	/* Both sides give way when they cannot go on: there may be one CPU for the two of them. */
	while (number < n_records) {
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

	if (header->type != 1 + number % 1000 ||
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

	n_records = is_long_form() ? LONG_N_RECORDS : N_RECORDS;
	make_ring();
	assert_int_equal(pthread_create(&writer, NULL, write_all, NULL), 0);
	for (uint32_t number = 0; number < n_records; number++) {
		while (!(header = sf_outbox_peek(ring)))
			sched_yield();
		assert_true(is_record(header, number));
		sf_outbox_release(ring);
	}
	pthread_join(writer, NULL);
	assert_null(sf_outbox_peek(ring));
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
