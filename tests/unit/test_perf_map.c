/* SPDX-License-Identifier: Apache-2.0 */
/* Names from the text of a perf map, and which paths are one's. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "symbols/perf_map.h"
#include "target/perf_map_file.h"

#define MAX_ADDRESSES 8

struct answers {
	char names[MAX_ADDRESSES][8192];
	const char *at[MAX_ADDRESSES];
};

static void on_location(size_t index, const struct sf_location *locations, size_t n, void *arg)
{
	struct answers *answers = arg;

	assert_true(index < MAX_ADDRESSES && n == 1 && !*answers->names[index]);
	assert_ptr_equal(locations->function, locations->linkage);
	assert_string_equal(locations->file, "");
	snprintf(answers->names[index], sizeof(answers->names[index]), "%s", locations->function);
	answers->at[index] = locations->function;
}

static void assert_named(const char *text, const uint64_t *addresses, size_t n, const char *const *names)
{
	struct answers answers = { 0 };

	assert_true(sf_perf_map_find(text, strlen(text), addresses, n, on_location, &answers));
	for (size_t i = 0; i < n; i++)
		assert_string_equal(answers.names[i], names[i]);
}

static void addresses_within_a_function_have_its_name(void **state)
{
	static const char text[] = "1000 20 JS:*fib /src/a.js:4:13\n1020 10 next\n0x2000 0X8 prefixed\nABCDEF0123456789 1 digits\n"
				   "ffffffffffffff00 ff last";
	static const uint64_t addresses[] = { 0x2007, 0x101f, 0x1020, 0xfff, 0x1000, 0x1030, 0xabcdef0123456789, 0xfffffffffffffffe };
	static const char *const names[] = { "prefixed", "JS:*fib /src/a.js:4:13", "next", "", "JS:*fib /src/a.js:4:13", "", "digits",
					     "last" };
	(void)state;

	assert_named(text, addresses, 8, names);
}

/* Code was freed, and other code took its place, or a part of it. */
static void the_last_line_counts(void **state)
{
	static const uint64_t addresses[] = { 0x1000, 0x1010, 0x1018 };
	static const char *const names[] = { "old", "new", "old" };
	(void)state;

	assert_named("1000 20 old\n1010 8 new\n", addresses, 3, names);
}

static void lines_that_make_no_sense_are_left_out(void **state)
{
	static const char *const texts[] = { "", "\n\n", "1000", "1000 20", "1000 20 ", "1000 20 \n", "1000 g a\n", "1000  20 a\n", " 1000 20 a\n",
					     "10000000000000000 20 a\n", "1000 0 a\n", "0x 20 a\n", "1000\t20 a\n", "-1000 20 a\n" };
	static const uint64_t addresses[] = { 0x1000, 0 };
	static const char *const names[] = { "", "" };
	(void)state;

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		assert_named(texts[i], addresses, 2, names);
	/* The line behind one counts. */
	assert_named("x\n1000 20 a\n", addresses, 1, (const char *const[]){ "a" });
}

/* Whoever receives names compares their places. */
static void each_text_is_at_one_place(void **state)
{
	static const uint64_t addresses[] = { 0x1000, 0x1001, 0x2000, 0x3000 };
	static const char text[] = "1000 20 a\n2000 20 a\n3000 20 b\n";
	struct answers answers = { 0 };
	(void)state;

	assert_true(sf_perf_map_find(text, sizeof(text) - 1, addresses, 4, on_location, &answers));
	assert_ptr_equal(answers.at[0], answers.at[1]);
	assert_ptr_equal(answers.at[0], answers.at[2]);
	assert_ptr_not_equal(answers.at[0], answers.at[3]);
}

static void a_long_name_is_cut(void **state)
{
	static const uint64_t addresses[] = { 0x1000 };
	struct answers answers = { 0 };
	char text[8000];
	(void)state;

	memset(text, 'a', sizeof(text));
	memcpy(text, "1000 20 ", 8);
	assert_true(sf_perf_map_find(text, sizeof(text), addresses, 1, on_location, &answers));
	assert_int_equal(strlen(answers.names[0]), 4096);
}

static void its_path(void **state)
{
	(void)state;

	assert_true(sf_is_perf_map_path("/tmp/perf-1.map"));
	assert_true(sf_is_perf_map_path("/tmp/perf-4194304.map"));
	assert_false(sf_is_perf_map_path("/tmp/perf-.map"));
	assert_false(sf_is_perf_map_path("/tmp/perf-1.map2"));
	assert_false(sf_is_perf_map_path("/tmp/perf-1x.map"));
	assert_false(sf_is_perf_map_path("/var/tmp/perf-1.map"));
	assert_false(sf_is_perf_map_path("/tmp/jit-1.dump"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(addresses_within_a_function_have_its_name),
		cmocka_unit_test(the_last_line_counts),
		cmocka_unit_test(lines_that_make_no_sense_are_left_out),
		cmocka_unit_test(each_text_is_at_one_place),
		cmocka_unit_test(a_long_name_is_cut),
		cmocka_unit_test(its_path),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
