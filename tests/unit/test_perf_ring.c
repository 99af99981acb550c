/* SPDX-License-Identifier: Apache-2.0 */
/* Rings of perf records: read in place, around the end, in batches; and rings whose contents are no records. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "capture/perf/record.h"
#include "capture/perf/rings.h"
#include "perf_rings.h"

#define SIZE 4096u

struct rig {
	struct perf_event_mmap_page *page;
	struct sf_perf_ring ring;
};

static struct rig begin_at(uint64_t position)
{
	struct rig rig = { .page = made_ring(SIZE) };

	rig.page->data_head = rig.page->data_tail = position;
	assert_true(sf_perf_ring_init(&rig.ring, rig.page, RING_PAGE, SIZE));
	return rig;
}

static void end(struct rig *rig)
{
	sf_perf_ring_deinit(&rig->ring);
	free(rig->page);
}

/* A record of `words` words whose numbers follow from `seed`. */
static void append(struct rig *rig, size_t words, uint64_t seed)
{
	struct made_record made;

	made_begin(&made, PERF_RECORD_LOST, 0);
	for (size_t i = 1; i < words; i++)
		made_u64(&made, seed + i);
	made_end(&made);
	ring_append(rig->page, SIZE, made.bytes, made.size);
}

static void expect(struct rig *rig, size_t words, uint64_t seed)
{
	const struct perf_event_header *header = sf_perf_ring_peek(&rig->ring);
	const uint64_t *numbers = (const void *)header;

	assert_non_null(header);
	assert_int_equal((uintptr_t)header % 8, 0);
	assert_int_equal(header->size, words * 8);
	for (size_t i = 1; i < words; i++)
		assert_int_equal(numbers[i], seed + i);
	sf_perf_ring_take(&rig->ring);
}

/* At each position of the ring, also those at which each record wraps. */
static void test_records_come_whole(void **state)
{
	(void)state;
	for (uint64_t position = 0; position < SIZE; position += 8) {
		struct rig rig = begin_at(position);

		append(&rig, 20, 100);
		append(&rig, 1, 0);
		append(&rig, 300, 7);
		assert_int_equal(sf_perf_ring_begin(&rig.ring), 8 * 321);
		for (int pass = 0; pass < 2; pass++) {
			expect(&rig, 20, 100);
			expect(&rig, 1, 0);
			expect(&rig, 300, 7);
			assert_null(sf_perf_ring_peek(&rig.ring));
			if (pass == 0)
				sf_perf_ring_rewind(&rig.ring);
		}
		sf_perf_ring_end(&rig.ring);
		assert_int_equal(rig.page->data_tail, rig.page->data_head);
		assert_int_equal(rig.ring.n_broken, 0);
		end(&rig);
	}
}

/* A record that comes during a batch is in the next one, and its room is not given away. */
static void test_a_batch_ends_where_it_began_to_end(void **state)
{
	struct rig rig = begin_at(0);

	(void)state;
	append(&rig, 3, 1);
	sf_perf_ring_begin(&rig.ring);
	append(&rig, 4, 2);
	expect(&rig, 3, 1);
	assert_null(sf_perf_ring_peek(&rig.ring));
	sf_perf_ring_end(&rig.ring);
	assert_int_equal(rig.page->data_tail, 3 * 8);
	assert_int_equal(sf_perf_ring_begin(&rig.ring), 4 * 8);
	expect(&rig, 4, 2);
	end(&rig);
}

/* A record that is left in a batch is the first of the next one. */
static void test_what_is_not_taken_stays(void **state)
{
	struct rig rig = begin_at(0);

	(void)state;
	append(&rig, 3, 1);
	append(&rig, 4, 2);
	sf_perf_ring_begin(&rig.ring);
	expect(&rig, 3, 1);
	sf_perf_ring_end(&rig.ring);
	assert_int_equal(rig.page->data_tail, 3 * 8);
	assert_int_equal(sf_perf_ring_begin(&rig.ring), 4 * 8);
	expect(&rig, 4, 2);
	end(&rig);
}

/* Sizes that no record has: 0, less than a header, odd, beyond the batch. The records before it stand. */
static void test_what_is_no_record_ends_the_batch(void **state)
{
	static const uint16_t sizes[] = { 0, 1, 7, 12, 17, 4096, 65535, 65528 };

	(void)state;
	for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
		const struct perf_event_header bad = { .type = PERF_RECORD_LOST, .size = sizes[i] };
		struct rig rig = begin_at(4064);

		append(&rig, 3, 5);
		ring_append(rig.page, SIZE, &bad, sizeof(bad));
		append(&rig, 2, 5);
		sf_perf_ring_begin(&rig.ring);
		expect(&rig, 3, 5);
		assert_null(sf_perf_ring_peek(&rig.ring));
		assert_int_equal(rig.ring.n_broken, 1);
		sf_perf_ring_end(&rig.ring);
		append(&rig, 2, 9);
		assert_int_equal(sf_perf_ring_begin(&rig.ring), 16);
		expect(&rig, 2, 9);
		end(&rig);
	}
}

/* A head that is further away than the ring is long, or behind the tail: nothing is read. */
static void test_impossible_heads(void **state)
{
	static const uint64_t heads[] = { SIZE + 8, UINT64_MAX, 1u << 20 };

	(void)state;
	for (size_t i = 0; i < sizeof(heads) / sizeof(*heads); i++) {
		struct rig rig = begin_at(0);

		rig.page->data_head = heads[i];
		assert_int_equal(sf_perf_ring_begin(&rig.ring), 0);
		assert_null(sf_perf_ring_peek(&rig.ring));
		sf_perf_ring_rewind(&rig.ring);
		assert_null(sf_perf_ring_peek(&rig.ring));
		assert_int_equal(rig.ring.n_broken, 1);
		end(&rig);
	}
}

static void test_rubbish_never_leads_out(void **state)
{
	uint32_t random = 1;

	(void)state;
	for (int round = 0; round < 2000; round++) {
		struct rig rig = begin_at((uint64_t)round * 8);
		const struct perf_event_header *header;
		struct sf_perf_record record;
		size_t n = 0;

		for (size_t i = 0; i < SIZE; i += 2) {
			uint16_t value = (uint16_t)((random = random * 1664525 + 1013904223) >> 20);

			ring_append(rig.page, SIZE, &value, sizeof(value));
		}
		sf_perf_ring_begin(&rig.ring);
		for (; (header = sf_perf_ring_peek(&rig.ring)); sf_perf_ring_take(&rig.ring)) {
			sf_perf_record_parse(header, &record);
			assert_true(++n <= SIZE / 8);
		}
		end(&rig);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_records_come_whole),
		cmocka_unit_test(test_a_batch_ends_where_it_began_to_end),
		cmocka_unit_test(test_what_is_not_taken_stays),
		cmocka_unit_test(test_what_is_no_record_ends_the_batch),
		cmocka_unit_test(test_impossible_heads),
		cmocka_unit_test(test_rubbish_never_leads_out),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
