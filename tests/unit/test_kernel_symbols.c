/* SPDX-License-Identifier: Apache-2.0 */
/* The kernel's symbols: which lines are functions, and which function an address is in. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "os/kernel_symbols.h"

static struct sf_kernel_symbols symbols;

static void add(const char *line)
{
	assert_true(sf_kernel_symbols_add(&symbols, line));
}

static int tear_down(void **state)
{
	(void)state;
	sf_kernel_symbols_deinit(&symbols);
	return 0;
}

static void test_functions_by_address(void **state)
{
	(void)state;
	add("ffffffffc0002000 t nf_hook\t[nf_tables]");
	add("ffffffff81000100 T second");
	add("ffffffff81000000 T first");
	add("ffffffff81000000 t first_alias");
	add("ffffffffc0009000 t bpf_prog_6deef7357e7b4530_sd_fw\t[bpf]");
	add("ffffffff81000080 D data");
	add("ffffffff81000090 b zeroes");
	sf_kernel_symbols_sort(&symbols);
	assert_null(sf_kernel_symbols_find(&symbols, 0xffffffff80ffffff));
	assert_string_equal(sf_kernel_symbols_find(&symbols, 0xffffffff81000000), "first");
	assert_string_equal(sf_kernel_symbols_find(&symbols, 0xffffffff810000ff), "first");
	assert_string_equal(sf_kernel_symbols_find(&symbols, 0xffffffff81000100), "second");
	assert_string_equal(sf_kernel_symbols_find(&symbols, 0xffffffffc0002fff), "nf_hook [nf_tables]");
	assert_string_equal(sf_kernel_symbols_find(&symbols, UINT64_MAX), "bpf_prog_6deef7357e7b4530_sd_fw [bpf]");
}

/* Names of modules and BPF programs may be others later. */
static void test_the_kernels_own_code(void **state)
{
	(void)state;
	assert_false(sf_kernel_symbols_is_own(&symbols, 0xffffffff81000000));
	add("ffffffff81000000 T _stext");
	add("ffffffff82000000 T _etext");
	add("ffffffff83000000 T later [module]");
	assert_true(sf_kernel_symbols_is_own(&symbols, 0xffffffff81000000));
	assert_true(sf_kernel_symbols_is_own(&symbols, 0xffffffff81ffffff));
	assert_false(sf_kernel_symbols_is_own(&symbols, 0xffffffff82000000));
	assert_false(sf_kernel_symbols_is_own(&symbols, 0xffffffff83000010));
}

/* Hidden addresses, cut lines, and names of any length. */
static void test_lines_that_name_nothing(void **state)
{
	char line[900];

	(void)state;
	add("0000000000000000 T hidden");
	add("");
	add("ffffffff81000000");
	add("ffffffff81000000 T");
	add("rubbish T name");
	sf_kernel_symbols_sort(&symbols);
	assert_null(sf_kernel_symbols_find(&symbols, UINT64_MAX));
	snprintf(line, sizeof(line), "ffffffff81000000 T %0700d", 1);
	add(line);
	sf_kernel_symbols_sort(&symbols);
	assert_int_equal(strlen(sf_kernel_symbols_find(&symbols, UINT64_MAX)), 512);
}

/* Of the running kernel, as far as this user may see it. */
static void test_the_running_kernel(void **state)
{
	(void)state;
	if (!sf_kernel_symbols_load(&symbols)) {
		assert_int_equal(symbols.symbols.n, 0);
		skip();
	}
	assert_true(symbols.symbols.n > 1000);
	for (size_t i = 1; i < symbols.symbols.n; i++)
		assert_true(symbols.symbols.items[i - 1].address <= symbols.symbols.items[i].address);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(test_functions_by_address, tear_down),
		cmocka_unit_test_teardown(test_the_kernels_own_code, tear_down),
		cmocka_unit_test_teardown(test_lines_that_name_nothing, tear_down),
		cmocka_unit_test_teardown(test_the_running_kernel, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
