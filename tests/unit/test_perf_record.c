/* SPDX-License-Identifier: Apache-2.0 */
/* Records of perf events, taken apart; each also cut at every length, in memory that ends there. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "capture/perf/record.h"
#include "perf_rings.h"

static bool parse(const struct made_record *made, struct sf_perf_record *ret)
{
	return sf_perf_record_parse((const void *)made->bytes, ret);
}

static void test_sample(void **state)
{
	const uint64_t chain[] = { PERF_CONTEXT_KERNEL, 0xffffffff81000010, 0xffffffff81000020, PERF_CONTEXT_USER, 5 };
	struct made_record made;
	struct sf_perf_record record;

	(void)state;
	made_sample(&made, 10, 11, 12345, chain, 5, PERF_SAMPLE_REGS_ABI_64, 64, 40);
	assert_true(parse(&made, &record));
	assert_int_equal(record.type, PERF_RECORD_SAMPLE);
	assert_int_equal(record.pid, 10);
	assert_int_equal(record.tid, 11);
	assert_int_equal(record.time_ns, 12345);
	assert_int_equal(record.cpu, 1);
	assert_int_equal(record.n_kernel, 2);
	assert_int_equal(record.kernel[0], 0xffffffff81000010);
	assert_int_equal(record.kernel[1], 0xffffffff81000020);
	assert_int_equal(record.n_chain, 1);
	assert_int_equal(record.chain[0], 5);
	assert_non_null(record.regs);
	assert_int_equal(record.regs[3], 0x1003);
	assert_int_equal(record.stack_room, 64);
	assert_int_equal(record.stack_size, 40);
	assert_int_equal(record.stack[39], 39);
	assert_int_equal(sf_perf_record_time((const void *)made.bytes), 12345);
}

/* What the kernel found in user mode is none of its own frames. */
static void test_a_chain_of_user_mode(void **state)
{
	const uint64_t chain[] = { PERF_CONTEXT_USER, 5, 6 };
	struct made_record made;
	struct sf_perf_record record;

	(void)state;
	made_sample(&made, 10, 11, 12345, chain, 3, PERF_SAMPLE_REGS_ABI_64, 64, 40);
	assert_true(parse(&made, &record));
	assert_null(record.kernel);
	assert_int_equal(record.n_kernel, 0);
	assert_int_equal(record.n_chain, 2);
	assert_int_equal(record.chain[1], 6);
}

/* A kernel thread, a 32-bit one, and one whose stack could not be read at all. */
static void test_samples_with_less(void **state)
{
	const uint64_t chain[] = { PERF_CONTEXT_KERNEL };
	struct made_record made;
	struct sf_perf_record record;

	(void)state;
	made_sample(&made, 1, 1, 1, chain, 0, PERF_SAMPLE_REGS_ABI_NONE, 0, 0);
	assert_true(parse(&made, &record));
	assert_null(record.regs);
	assert_null(record.kernel);
	assert_int_equal(record.stack_room, 0);
	assert_false(record.is_32_bit);
	made_sample(&made, 1, 1, 1, chain, 1, PERF_SAMPLE_REGS_ABI_32, 16, 16);
	assert_true(parse(&made, &record));
	assert_true(record.is_32_bit);
	assert_null(record.regs);
	assert_int_equal(record.n_kernel, 0);
	made_sample(&made, 1, 1, 1, chain, 1, PERF_SAMPLE_REGS_ABI_64, 16, 0);
	assert_true(parse(&made, &record));
	assert_non_null(record.regs);
	assert_int_equal(record.stack_size, 0);
}

/* Counts that promise more than there is. */
static void test_samples_that_lie(void **state)
{
	struct made_record made;
	struct sf_perf_record record;

	(void)state;
	for (unsigned i = 0; i < 3; i++) {
		static const uint64_t lies[] = { 1000, UINT64_MAX, UINT64_C(1) << 61 };

		made_begin(&made, PERF_RECORD_SAMPLE, 0);
		made_identity(&made, 1, 1, 1, 0);
		made_u64(&made, lies[i]);
		made_end(&made);
		assert_false(parse(&made, &record));
		made_sample(&made, 1, 1, 1, NULL, 0, PERF_SAMPLE_REGS_ABI_64, 0, 0);
		memcpy(made.bytes + made.size - 8, &lies[i], 8);
		assert_false(parse(&made, &record));
	}
	made_sample(&made, 1, 1, 1, NULL, 0, PERF_SAMPLE_REGS_ABI_64, 16, 17); /* more filled than there is room */
	assert_false(parse(&made, &record));
}

static void make_comm(struct made_record *made, uint16_t misc)
{
	made_begin(made, PERF_RECORD_COMM, misc);
	made_ids(made, 20, 21);
	made_text(made, "worker");
	made_identity(made, 20, 21, 99, 3);
	made_end(made);
}

static void make_fork(struct made_record *made, uint32_t type)
{
	made_begin(made, type, 0);
	made_ids(made, 30, 29);
	made_ids(made, 31, 28);
	made_u64(made, 98);
	made_identity(made, 29, 28, 98, 0);
	made_end(made);
}

static void make_mapping(struct made_record *made, const char *path)
{
	made_begin(made, PERF_RECORD_MMAP2, 0);
	made_ids(made, 40, 41);
	made_u64(made, 0x400000);
	made_u64(made, 0x1000);
	made_u64(made, 0x2000);
	made_ids(made, 8, 1);
	made_u64(made, 77);
	made_u64(made, 1);
	made_ids(made, 5, 2);
	made_text(made, path);
	made_identity(made, 40, 41, 97, 0);
	made_end(made);
}

static void make_lost(struct made_record *made)
{
	made_begin(made, PERF_RECORD_LOST, 0);
	made_u64(made, 5);
	made_u64(made, 1234);
	made_identity(made, 0, 0, 96, 0);
	made_end(made);
}

static void make_read(struct made_record *made)
{
	made_begin(made, PERF_RECORD_READ, 0);
	made_ids(made, 50, 51);
	made_u64(made, 20000);
	made_identity(made, 50, 51, 95, 0);
	made_end(made);
}

static void test_other_records(void **state)
{
	struct made_record made;
	struct sf_perf_record record;

	(void)state;
	make_comm(&made, PERF_RECORD_MISC_COMM_EXEC);
	assert_true(parse(&made, &record));
	assert_string_equal(record.name, "worker");
	assert_true(record.is_exec);
	assert_int_equal(record.tid, 21);
	make_comm(&made, 0);
	assert_true(parse(&made, &record) && !record.is_exec);
	make_fork(&made, PERF_RECORD_FORK);
	assert_true(parse(&made, &record));
	assert_int_equal(record.pid, 30);
	assert_int_equal(record.tid, 31);
	assert_int_equal(record.parent_pid, 29);
	assert_int_equal(record.parent_tid, 28);
	make_mapping(&made, "/usr/lib/x.so");
	assert_true(parse(&made, &record));
	assert_int_equal(record.mapping.start, 0x400000);
	assert_int_equal(record.mapping.size, 0x1000);
	assert_int_equal(record.mapping.offset, 0x2000);
	assert_int_equal(record.mapping.inode, 77);
	assert_int_equal(record.mapping.major, 8);
	assert_int_equal(record.mapping.protection, 5);
	assert_string_equal(record.mapping.path, "/usr/lib/x.so");
	make_lost(&made);
	assert_true(parse(&made, &record));
	assert_int_equal(record.n_lost, 1234);
	make_read(&made);
	assert_true(parse(&made, &record));
	assert_int_equal(record.tid, 51);
	assert_int_equal(record.cpu_ns, 20000);
}

/* In memory of its own that ends where the record ends: a read beyond is found by the sanitizers. */
static void cut_everywhere(const struct made_record *made)
{
	for (size_t size = sizeof(struct perf_event_header); size < made->size; size += 8) {
		struct perf_event_header *cut = malloc(size);
		struct sf_perf_record record;

		memcpy(cut, made->bytes, size);
		cut->size = (uint16_t)size;
		if (sf_perf_record_parse(cut, &record)) {
			assert_true(!record.stack || record.stack + record.stack_size <= (uint8_t *)cut + size);
			assert_true(!record.name || memchr(record.name, 0, (size_t)((char *)cut + size - record.name)));
		}
		sf_perf_record_time(cut);
		free(cut);
	}
}

static void test_cut_records(void **state)
{
	const uint64_t chain[] = { PERF_CONTEXT_KERNEL, 1, 2 };
	struct made_record made;

	(void)state;
	made_sample(&made, 1, 1, 1, chain, 3, PERF_SAMPLE_REGS_ABI_64, 128, 128);
	cut_everywhere(&made);
	make_comm(&made, 0);
	cut_everywhere(&made);
	make_fork(&made, PERF_RECORD_EXIT);
	cut_everywhere(&made);
	make_mapping(&made, "/a/b");
	cut_everywhere(&made);
	make_lost(&made);
	cut_everywhere(&made);
	make_read(&made);
	cut_everywhere(&made);
}

/* A name without its zero, and one of no bytes. */
static void test_text_without_an_end(void **state)
{
	struct made_record made;
	struct sf_perf_record record;

	(void)state;
	made_begin(&made, PERF_RECORD_COMM, 0);
	made_ids(&made, 20, 21);
	made_u64(&made, UINT64_MAX);
	made_identity(&made, 20, 21, 99, 3);
	made_end(&made);
	assert_false(parse(&made, &record));
	made_begin(&made, PERF_RECORD_COMM, 0);
	made_ids(&made, 20, 21);
	made_identity(&made, 20, 21, 99, 3);
	made_end(&made);
	assert_false(parse(&made, &record));
}

static void test_unknown_types(void **state)
{
	struct made_record made;
	struct sf_perf_record record;

	(void)state;
	for (uint32_t type = 20; type < 100; type++) {
		made_begin(&made, type, 0);
		made_identity(&made, 1, 1, 1, 1);
		made_end(&made);
		assert_false(parse(&made, &record));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_sample),
		cmocka_unit_test(test_a_chain_of_user_mode),
		cmocka_unit_test(test_samples_with_less),
		cmocka_unit_test(test_samples_that_lie),
		cmocka_unit_test(test_other_records),
		cmocka_unit_test(test_cut_records),
		cmocka_unit_test(test_text_without_an_end),
		cmocka_unit_test(test_unknown_types),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
