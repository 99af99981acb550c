/* SPDX-License-Identifier: Apache-2.0 */
/* Files line by line (base/lines.h), and folders name by name (base/folder.h). */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/cleanup.h"
#include "base/folder.h"
#include "base/lines.h"

static int file_of(const char *text, size_t size)
{
	const int fd = memfd_create("lines", MFD_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, size), size);
	lseek(fd, 0, SEEK_SET);
	return fd;
}

static void assert_lines(const char *text, const char *const *wanted)
{
	SF_CLEANUP(close) int fd = file_of(text, strlen(text));
	SF_CLEANUP(lines) struct sf_lines lines = { .fd = fd };

	for (; *wanted; wanted++)
		assert_string_equal(sf_lines_next(&lines), *wanted);
	assert_null(sf_lines_next(&lines));
	assert_null(sf_lines_next(&lines));
}

static void short_files(void **state)
{
	(void)state;
	assert_lines("", (const char *[]){ NULL });
	assert_lines("\n", (const char *[]){ "", NULL });
	assert_lines("one", (const char *[]){ "one", NULL });
	assert_lines("one\n", (const char *[]){ "one", NULL });
	assert_lines("\n\ntwo\nthree", (const char *[]){ "", "", "two", "three", NULL });
}

/* Lines of all lengths up to three buffers, so that their ends fall everywhere. */
static void lines_longer_than_a_buffer(void **state)
{
	const size_t longest = 25000;
	char *text = malloc(longest + 1);
	const int fd = memfd_create("lines", MFD_CLOEXEC);
	struct sf_lines lines = { .fd = fd };
	(void)state;

	memset(text, 'x', longest);
	text[longest] = '\n';
	for (size_t length = 0; length <= longest; length += 1 + length / 7)
		assert_int_equal(write(fd, text + longest - length, length + 1), length + 1);
	lseek(fd, 0, SEEK_SET);
	for (size_t length = 0; length <= longest; length += 1 + length / 7) {
		const char *line = sf_lines_next(&lines);

		assert_non_null(line);
		assert_int_equal(strlen(line), length);
	}
	assert_null(sf_lines_next(&lines));
	sf_lines_deinit(&lines);
	close(fd);
	free(text);
}

static void a_file_that_cannot_be_read(void **state)
{
	SF_CLEANUP(lines) struct sf_lines lines = { .fd = -1 };
	(void)state;

	assert_null(sf_lines_next(&lines));
}

/* More names than one call of the kernel gives. */
static void names_of_a_folder(void **state)
{
	char path[] = "/tmp/stillframe-folder-XXXXXX";
	SF_CLEANUP(folder) struct sf_folder folder = { .fd = -1 };
	bool seen[1000] = { false };
	const char *name;
	unsigned n = 0;
	int at;
	(void)state;

	assert_non_null(mkdtemp(path));
	at = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	for (unsigned i = 0; i < 1000; i++) {
		char entry[32];

		snprintf(entry, sizeof(entry), "%u", i);
		assert_int_equal(mkdirat(at, entry, 0700), 0);
	}
	assert_true(sf_folder_open(&folder, at, "."));
	while ((name = sf_folder_next(&folder))) {
		const unsigned i = (unsigned)atoi(name);

		assert_false(seen[i]);
		seen[i] = true;
		n++;
		unlinkat(at, name, AT_REMOVEDIR);
	}
	close(at);
	rmdir(path);
	assert_int_equal(n, 1000);
}

static void a_folder_that_is_none(void **state)
{
	struct sf_folder folder;
	(void)state;

	assert_false(sf_folder_open(&folder, AT_FDCWD, "/proc/self/stat"));
	assert_int_equal(errno, ENOTDIR);
	sf_folder_close(&folder);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(short_files), cmocka_unit_test(lines_longer_than_a_buffer), cmocka_unit_test(a_file_that_cannot_be_read),
		cmocka_unit_test(names_of_a_folder), cmocka_unit_test(a_folder_that_is_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
