/* SPDX-License-Identifier: Apache-2.0 */
/* Unwind tables and code maps: lookups at every boundary, and blocks that lie about their sizes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "recorded.h"

static struct table_builder b;

/* Rows at 0x10, 0x20 (a gap), 0x30; the CFA offset says which rules were found. */
static const struct sf_table *three_rows(void)
{
	struct sf_rules first = simple_rules(7, 1, -8), last = simple_rules(7, 3, -8);

	table_start(&b, &sf_arch_x86_64);
	table_row(&b, 0x10, &first);
	table_row(&b, 0x20, NULL);
	table_row(&b, 0x30, &last);
	return table_finish(&b);
}

static void a_row_holds_until_the_next(void **state)
{
	const struct sf_table *table = three_rows();
	(void)state;

	assert_null(sf_table_find(table, 0));
	assert_null(sf_table_find(table, 0xf));
	for (uint64_t address = 0x10; address < 0x20; address++)
		assert_int_equal(sf_table_find(table, address)->cfa.value, 1);
	for (uint64_t address = 0x20; address < 0x30; address++)
		assert_null(sf_table_find(table, address));
	assert_int_equal(sf_table_find(table, 0x30)->cfa.value, 3);
	assert_int_equal(sf_table_find(table, UINT32_MAX)->cfa.value, 3);
	assert_null(sf_table_find(table, UINT64_C(1) << 32));
	assert_null(sf_table_find(table, UINT64_MAX));
}

static void a_range_ends_where_the_next_row_starts(void **state)
{
	const struct sf_table *table = three_rows();
	struct sf_row_range range;
	(void)state;

	assert_false(sf_table_range(table, 0xf, &range));
	assert_true(sf_table_range(table, 0x1f, &range));
	assert_true(range.start == 0x10 && range.end == 0x20);
	assert_true(sf_table_range(table, 0x20, &range));
	assert_true(range.start == 0x20 && range.end == 0x30);
	assert_true(sf_table_range(table, 0x31, &range));
	assert_true(range.start == 0x30 && range.end == UINT64_MAX);
	assert_true(sf_table_starts_row(table, 0x30) && !sf_table_starts_row(table, 0x31));
}

static void addresses_count_from_the_base(void **state)
{
	struct sf_table_header *header;
	const struct sf_table *table = three_rows();
	(void)state;

	header = (struct sf_table_header *)b.block;
	header->base = 0x400000;
	assert_null(sf_table_find(table, 0x10));
	assert_null(sf_table_find(table, 0x400000));
	assert_int_equal(sf_table_find(table, 0x400010)->cfa.value, 1);
}

static void every_row_is_found(void **state)
{
	(void)state;
	for (unsigned n = 1; n <= 32; n++) {
		table_start(&b, &sf_arch_x86_64);
		for (unsigned i = 0; i < n; i++) {
			struct sf_rules rules = simple_rules(7, (int32_t)i, -8);

			table_row(&b, 16 * i, &rules);
		}
		table_finish(&b);
		for (unsigned i = 0; i < n; i++) {
			assert_int_equal(sf_table_find(&b.table, 16 * i)->cfa.value, i);
			assert_int_equal(sf_table_find(&b.table, 16 * i + 15)->cfa.value, i);
		}
	}
}

static void no_rows_no_rules(void **state)
{
	(void)state;
	table_start(&b, &sf_arch_x86_64);
	assert_null(sf_table_find(table_finish(&b), 0));
}

static void a_rules_number_out_of_bounds_is_no_rules(void **state)
{
	(void)state;
	three_rows();
	((struct sf_row *)(b.block + sizeof(struct sf_table_header)))[0].rules = 3;
	assert_null(sf_table_find(&b.table, 0x10));
}

static void rows_out_of_order_end_all_the_same(void **state)
{
	struct sf_row *rows;
	(void)state;

	three_rows();
	rows = (struct sf_row *)(b.block + sizeof(struct sf_table_header));
	rows[1].offset = UINT32_MAX;
	rows[2].offset = 0;
	assert_int_equal(sf_table_find(&b.table, 0x100)->cfa.value, 1);
}

/* One way to spoil a header: a field's place and the value that is put there. */
struct lie {
	size_t offset, size;
	uint64_t value;
};

#define LIE(field, value)                                                                          \
	{ offsetof(struct sf_table_header, field),                                                 \
	  sizeof(((struct sf_table_header *)0)->field), (value) }

static const struct lie lies[] = {
	LIE(magic, 0), LIE(version, 0), LIE(version, SF_TABLE_VERSION + 1),
	LIE(n_rows, 4), LIE(n_rows, 1000), LIE(n_rows, UINT32_MAX), LIE(n_rules, 4), LIE(n_rules, UINT32_MAX),
	LIE(blob_size, 1), LIE(blob_size, UINT32_MAX),
	LIE(size, 0), LIE(size, 79), LIE(size, 80), LIE(size, UINT64_MAX),
};

static void headers_that_lie_are_refused(void **state)
{
	struct sf_table table;
	(void)state;

	for (size_t i = 0; i < sizeof(lies) / sizeof(lies[0]); i++) {
		size_t size;

		three_rows();
		size = b.table.header->size;
		assert_true(sf_table_init(&table, b.block, size));
		memcpy(b.block + lies[i].offset, &lies[i].value, lies[i].size);
		assert_false(sf_table_init(&table, b.block, size));
	}
}

static void blocks_that_are_cut_are_refused(void **state)
{
	struct sf_table table;
	(void)state;

	three_rows();
	for (size_t size = 0; size < b.table.header->size; size++)
		assert_false(sf_table_init(&table, b.block, size));
	assert_false(sf_table_init(&table, b.block + 4, b.table.header->size));
}

static void a_region_ends_before_its_end(void **state)
{
	static struct recorded r;
	(void)state;

	recorded_init(&r, &sf_arch_x86_64);
	assert_null(sf_code_map_find(NULL, 0));
	assert_null(sf_code_map_find(r.map, 0));
	for (unsigned n = 1; n <= RECORDED_REGIONS; n++) {
		recorded_region(&r, 0x1000 * n, 0x1000 * n + 0x800, NULL, n);
		assert_null(sf_code_map_find(r.map, 0xfff));
		for (unsigned i = 1; i <= n; i++) {
			assert_int_equal(sf_code_map_find(r.map, 0x1000 * i)->image, i);
			assert_int_equal(sf_code_map_find(r.map, 0x1000 * i + 0x7ff)->image, i);
			assert_null(sf_code_map_find(r.map, 0x1000 * i + 0x800));
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_row_holds_until_the_next),
		cmocka_unit_test(a_range_ends_where_the_next_row_starts),
		cmocka_unit_test(addresses_count_from_the_base),
		cmocka_unit_test(every_row_is_found),
		cmocka_unit_test(no_rows_no_rules),
		cmocka_unit_test(a_rules_number_out_of_bounds_is_no_rules),
		cmocka_unit_test(rows_out_of_order_end_all_the_same),
		cmocka_unit_test(headers_that_lie_are_refused),
		cmocka_unit_test(blocks_that_are_cut_are_refused),
		cmocka_unit_test(a_region_ends_before_its_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
