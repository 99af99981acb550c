/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names that are kept on disk: what was added comes back, for the files that it is of only, and nothing of a damaged
 * file. Everything happens below a folder made here.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/cleanup.h"
#include "folder.h"
#include "symbols/kept_names.h"
#include "symbols/lookup.h"

static char home[64];
static uint8_t digest[SF_DIGEST_SIZE] = { 1, 2, 3 };

static int set_up(void **state)
{
	(void)state;
	strcpy(home, "/tmp/stillframe-test-XXXXXX");
	return mkdtemp(home) && setenv("XDG_CACHE_HOME", home, 1) == 0 ? 0 : -1;
}

static int tear_down(void **state)
{
	(void)state;
	return folder_remove(home);
}

static const struct sf_location pair[] = {
	{ .function = "inner", .linkage = "_Z5innerv", .file = "/src/a.cc", .line = 7, .inlined = true, .approximate = true },
	{ .function = "outer", .linkage = "outer", .file = "", .line = 0 },
};

static void keep(uint64_t address, const struct sf_location *locations, size_t n)
{
	struct sf_kept_names names;

	sf_kept_names_open(digest, &names);
	sf_kept_names_add(&names, address, locations, n);
	sf_kept_names_write(&names);
	sf_kept_names_deinit(&names);
}

/* How many locations are kept at the address. */
static size_t kept_at(uint64_t address, struct sf_location ret[2], struct sf_kept_names *names)
{
	const struct sf_location *found;
	size_t n = 0;

	sf_kept_names_open(digest, names);
	found = sf_kept_names_find(names, address, &n);
	for (size_t i = 0; found && i < n && i < 2; i++)
		ret[i] = found[i];
	return found ? n : 0;
}

static void assert_kept(uint64_t address, size_t n)
{
	struct sf_location found[2];
	struct sf_kept_names names;

	assert_int_equal(kept_at(address, found, &names), n);
	for (size_t i = 0; i < n; i++) {
		const struct sf_location *expected = &pair[i + 2 - n];

		assert_string_equal(found[i].function, expected->function);
		assert_string_equal(found[i].linkage, expected->linkage);
		assert_string_equal(found[i].file, expected->file);
		assert_int_equal(found[i].line, expected->line);
		assert_int_equal(found[i].inlined, expected->inlined);
		assert_int_equal(found[i].approximate, expected->approximate);
	}
	sf_kept_names_deinit(&names);
}

static void what_was_added_comes_back(void **state)
{
	(void)state;
	assert_kept(0x1000, 0);
	keep(0x2000, pair, 2);
	keep(0x1000, pair + 1, 1);
	assert_kept(0x1000, 1);
	assert_kept(0x2000, 2);
	assert_kept(0x1001, 0);
	digest[0]++;
	assert_kept(0x1000, 0);
	digest[0]--;
}

static void path_of_kept(char ret[256])
{
	struct sf_kept_names names;

	sf_kept_names_open(digest, &names);
	snprintf(ret, 256, "%s/stillframe/names-4/%s", home, names.name);
	sf_kept_names_deinit(&names);
}

/* Each byte of the file is changed once. */
static void a_damaged_file_says_nothing(void **state)
{
	char path[256];
	struct stat status;
	int fd;

	(void)state;
	keep(0x1000, pair + 1, 1);
	path_of_kept(path);
	assert_int_equal(stat(path, &status), 0);
	fd = open(path, O_RDWR | O_CLOEXEC);
	for (off_t i = 0; i < status.st_size; i++) {
		uint8_t byte, other;

		assert_int_equal(pread(fd, &byte, 1, i), 1);
		other = byte ^ 1;
		assert_int_equal(pwrite(fd, &other, 1, i), 1);
		assert_kept(0x1000, 0);
		assert_int_equal(pwrite(fd, &byte, 1, i), 1);
	}
	assert_kept(0x1000, 1);
	assert_int_equal(ftruncate(fd, status.st_size - 1), 0);
	assert_kept(0x1000, 0);
	close(fd);
}

/*
 * The file is whole, but not an answer of it: numbers that lead out of it, a text without an end, a function without a
 * name, no location.
 */
static void answers_are_checked(void **state)
{
	static const struct {
		uint64_t address, n;
		char rest[16];
		size_t size;
	} wrong[] = {
		{ 0x1000, 0, "", 0 },
		{ 0x1000, UINT64_MAX, "\0\0\0\0\0\0\0\0a\0a\0a", 14 },
		{ 0x1000, 1, "\0\0\0\0\0\0\0\0a\0a\0a", 13 },
		{ 0x1000, 1, "\0\0\0\0\0\0\0\0\0a\0a", 12 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		struct sf_kept_names names;

		sf_kept_names_open(digest, &names);
		for (const uint8_t *at = (const uint8_t *)&wrong[i]; at < (const uint8_t *)wrong[i].rest + wrong[i].size; at++)
			assert_true(sf_vec_push(&names.added, *at));
		sf_kept_names_write(&names);
		sf_kept_names_deinit(&names);
		assert_kept(0x1000, 0);
	}
}

/* A file that would become too large begins anew. */
static void a_file_has_a_limit(void **state)
{
	struct sf_kept_names names;
	struct stat status;
	char path[256];

	(void)state;
	keep(0x1000, pair, 2);
	sf_kept_names_open(digest, &names);
	for (uint64_t i = 0; names.added.n < ((size_t)4 << 20) - 102; i++) /* an answer has 71 bytes, and the digest 32 */
		sf_kept_names_add(&names, 0x100000 + i, pair, 2);
	sf_kept_names_write(&names);
	sf_kept_names_deinit(&names);
	path_of_kept(path);
	assert_int_equal(stat(path, &status), 0);
	assert_true(status.st_size <= 4 << 20);
	assert_kept(0x1000, 0);
	assert_kept(0x100000, 2);
}

/* The answers that are kept for a file, as long as its bytes are the same. */

__attribute__((noinline)) static int looked_up(int n)
{
	return n ? looked_up(n - 1) + 1 : 3;
}

static char arrived[64];

static void on_location(size_t index, const struct sf_location *locations, size_t n, void *arg)
{
	(void)index;
	(void)n;
	(void)arg;
	snprintf(arrived, sizeof(arrived), "%s", locations[0].function);
}

extern const char __executable_start;

static const char *look_up(int fd)
{
	const uint64_t address = (uint64_t)((uintptr_t)looked_up - (uintptr_t)&__executable_start);
	const struct sf_lookup_image image = { .fd = fd, .path = "/a/program", .addresses = &address, .n = 1 };
	struct sf_lookup lookup = sf_lookup_begin(NULL);

	*arrived = 0;
	assert_true(sf_lookup_resolve(&lookup, &image, 1, on_location, NULL));
	return arrived;
}

/* Puts another name in the place of the one that is kept. */
static void rename_kept(int fd)
{
	struct sf_symbols *symbols;
	struct sf_kept_names names;
	const struct sf_location other = { .function = "by_file", .linkage = "by_file", .file = "" };

	assert_true(sf_symbols_open(fd, "/a/program", true, &symbols, NULL));
	if (!sf_symbols_digest(symbols, digest)) {
		sf_symbols_close(symbols);
		skip(); /* with a sanitizer the program is too large */
	}
	sf_symbols_close(symbols);
	sf_kept_names_open(digest, &names);
	assert_int_equal(names.of.n, 1);
	names.size = 0;
	sf_kept_names_add(&names, names.of.items[0].address, &other, 1);
	sf_kept_names_write(&names);
	sf_kept_names_deinit(&names);
}

static void a_look_up_takes_what_is_kept(void **state)
{
	SF_CLEANUP(close) int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC), copy = -1;
	char path[128], line[320];

	(void)state;
	assert_string_equal(look_up(fd), "looked_up");
	rename_kept(fd);
	assert_string_equal(look_up(fd), "by_file");
	snprintf(path, sizeof(path), "%s/copy", home);
	snprintf(line, sizeof(line), "cp /proc/%d/exe %s && printf x >> %s", (int)getpid(), path, path);
	assert_int_equal(system(line), 0);
	copy = open(path, O_RDONLY | O_CLOEXEC);
	assert_string_equal(look_up(copy), "looked_up");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(what_was_added_comes_back, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_damaged_file_says_nothing, set_up, tear_down),
		cmocka_unit_test_setup_teardown(answers_are_checked, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_file_has_a_limit, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_look_up_takes_what_is_kept, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
