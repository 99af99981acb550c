/* SPDX-License-Identifier: Apache-2.0 */
/* The kernel's symbols: which lines are functions, and which function an address is in. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdbool.h>
#include <stdint.h>
#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
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
	assert_string_equal(sf_kernel_symbols_find(&symbols, 0xffffffffc0009fff), "bpf_prog_6deef7357e7b4530_sd_fw [bpf]");
}

/* Behind them may be code that the kernel does not name. */
static void test_functions_end(void **state)
{
	(void)state;
	add("ffffffffc0002000 t nf_first\t[nf_tables]");
	add("ffffffffc0008010 t nf_last\t[nf_tables]");
	add("ffffffffc0019040 t bpf_prog_6deef7357e7b4530_sd_fw\t[bpf]");
	add("ffffffffc00190c0 t bpf_prog_6deef7357e7b4530_two\t[bpf]");
	add("ffffffffc0030000 t bpf_prog_6deef7357e7b4530_long\t[bpf]");
	assert_true(sf_kernel_symbols_end(&symbols, 0xffffffffc0035000));
	assert_true(sf_kernel_symbols_end(&symbols, 0xffffffffc0019080));
	assert_true(sf_kernel_symbols_end(&symbols, 0xffffffffc00190c0)); /* another function begins there */
	sf_kernel_symbols_sort(&symbols);
	assert_string_equal(sf_kernel_symbols_find(&symbols, 0xffffffffc0007fff), "nf_first [nf_tables]");
	assert_string_equal(sf_kernel_symbols_find(&symbols, 0xffffffffc0009fff), "nf_last [nf_tables]");
	assert_null(sf_kernel_symbols_find(&symbols, 0xffffffffc000a000));
	assert_string_equal(sf_kernel_symbols_find(&symbols, 0xffffffffc001907f), "bpf_prog_6deef7357e7b4530_sd_fw [bpf]");
	assert_null(sf_kernel_symbols_find(&symbols, 0xffffffffc0019080));
	assert_string_equal(sf_kernel_symbols_find(&symbols, 0xffffffffc00190c0), "bpf_prog_6deef7357e7b4530_two [bpf]");
	assert_string_equal(sf_kernel_symbols_find(&symbols, 0xffffffffc0034fff), "bpf_prog_6deef7357e7b4530_long [bpf]");
	assert_null(sf_kernel_symbols_find(&symbols, UINT64_MAX));
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
	assert_int_equal(strlen(sf_kernel_symbols_find(&symbols, 0xffffffff81000000)), 512);
}

/* Of the running kernel, as far as this user may see it. */
static void test_the_running_kernel(void **state)
{
	const bool shown = sf_kernel_symbols_are_shown();

	(void)state;
	assert_int_equal(sf_kernel_symbols_load(&symbols), shown);
	if (!shown) {
		assert_int_equal(symbols.symbols.n, 0);
		skip();
	}
	assert_true(symbols.symbols.n > 1000);
	for (size_t i = 1; i < symbols.symbols.n; i++)
		assert_true(symbols.symbols.items[i - 1].address <= symbols.symbols.items[i].address);
}

static char home[64], kept_folder[128], kept_file[PATH_MAX];

static int set_up_cache(void **state)
{
	(void)state;
	strcpy(home, "/tmp/stillframe-test-XXXXXX");
	assert_non_null(mkdtemp(home));
	assert_int_equal(setenv("XDG_CACHE_HOME", home, 1), 0);
	snprintf(kept_folder, sizeof(kept_folder), "%s/stillframe/kernel-symbols-1", home);
	return 0;
}

/* The one file that is kept; false: none is. */
static bool find_kept(void)
{
	DIR *folder = opendir(kept_folder);
	const struct dirent *entry;
	unsigned n = 0;

	while (folder && (entry = readdir(folder))) {
		if (entry->d_name[0] == '.')
			continue;
		snprintf(kept_file, sizeof(kept_file), "%s/%s", kept_folder, entry->d_name);
		n++;
	}
	if (folder)
		closedir(folder);
	assert_true(n <= 1);
	return n == 1;
}

static int tear_down_cache(void **state)
{
	char stillframe[128];

	if (find_kept())
		assert_int_equal(unlink(kept_file), 0);
	rmdir(kept_folder);
	snprintf(stillframe, sizeof(stillframe), "%s/stillframe", home);
	(void)state;
	rmdir(stillframe);
	return rmdir(home);
}

/* Loads once, so that the symbols are kept, if none are by the test before. This user may not see them: skips. */
static void keep_first(void)
{
	if (find_kept())
		return;
	if (!sf_kernel_symbols_load_own(&symbols)) {
		assert_false(find_kept());
		skip();
	}
	assert_true(find_kept());
}

static void load_again(void)
{
	sf_kernel_symbols_deinit(&symbols);
	assert_true(sf_kernel_symbols_load_own(&symbols));
}

/* Writes over the end of the file, which has the last name. */
static void overwrite_end(const char *text)
{
	const int fd = open(kept_file, O_WRONLY | O_CLOEXEC);

	assert_true(fd >= 0);
	assert_true(lseek(fd, -(off_t)strlen(text) - 1, SEEK_END) > 0);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	close(fd);
}

static bool is_last_name_like(const char *text)
{
	return strncmp(symbols.names.items + symbols.names.n - strlen(text) - 1, text, strlen(text)) == 0;
}

static void test_the_kernels_own_code_is_kept(void **state)
{
	struct sf_kernel_symbols all = { 0 };
	size_t n_own = 0;

	(void)state;
	keep_first();
	overwrite_end("by_file");
	load_again();
	assert_true(is_last_name_like("by_file"));
	assert_true(sf_kernel_symbols_load(&all));
	for (size_t i = 0; i < all.symbols.n; i++) {
		if (!sf_kernel_symbols_is_own(&all, all.symbols.items[i].address))
			continue;
		assert_true(sf_kernel_symbols_is_own(&symbols, all.symbols.items[i].address));
		assert_string_equal(all.names.items + all.symbols.items[i].name,
				    symbols.names.items + symbols.symbols.items[n_own++].name);
	}
	assert_int_equal(symbols.symbols.n, n_own);
	sf_kernel_symbols_deinit(&all);
}

/* One that others may write to; one that is cut; one whose numbers lead out of it. Each is written anew. */
static void test_other_files_are_not_believed(void **state)
{
	const uint64_t far = UINT64_MAX / 2;
	int fd;

	(void)state;
	keep_first();
	overwrite_end("by_file");
	assert_int_equal(chmod(kept_file, 0666), 0);
	load_again();
	assert_false(is_last_name_like("by_file"));
	assert_int_equal(truncate(kept_file, 100000), 0);
	load_again();
	assert_true(symbols.symbols.n > 1000);
	fd = open(kept_file, O_WRONLY | O_CLOEXEC);
	assert_int_equal(pwrite(fd, &far, sizeof(far), 4 * sizeof(uint64_t) + offsetof(struct sf_kernel_symbol, name)),
			 sizeof(far));
	close(fd);
	load_again();
	assert_true(symbols.symbols.items[0].name < symbols.names.n);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(test_functions_by_address, tear_down),
		cmocka_unit_test_teardown(test_functions_end, tear_down),
		cmocka_unit_test_teardown(test_the_kernels_own_code, tear_down),
		cmocka_unit_test_teardown(test_lines_that_name_nothing, tear_down),
		cmocka_unit_test_teardown(test_the_running_kernel, tear_down),
		cmocka_unit_test_teardown(test_the_kernels_own_code_is_kept, tear_down),
		cmocka_unit_test_teardown(test_other_files_are_not_believed, tear_down),
	};

	return cmocka_run_group_tests(tests, set_up_cache, tear_down_cache);
}
