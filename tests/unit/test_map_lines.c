/* SPDX-License-Identifier: Apache-2.0 */
/* The memory map of a process, whatever the files in it are called. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "os/process.h"

/*
 * The kernel prints a newline in a name as \012, so a name of 4,095 bytes can have 16,380 in
 * /proc/PID/maps. A name with a newline makes the line behind it look like a mapping of its own.
 */
#define FAKE "1000-2000 r-xp 00000000 00:00 1 fake"
#define N_FOLDERS 5
#define N_NEWLINES 210
#define BEFORE_PATH 73 /* columns */

static char root[] = "/tmp/stillframe-maps-XXXXXX";
static char paths[N_FOLDERS + 1][4096];

/* A file whose line has FAKE `column` bytes behind its start. */
static void make_path(size_t column)
{
	char newlines[N_NEWLINES + 1] = "", letters[256] = "";
	size_t printed = BEFORE_PATH + strlen(root);

	memset(newlines, '\n', N_NEWLINES);
	snprintf(paths[0], sizeof(paths[0]), "%s/%s", root, newlines);
	for (int i = 1; i < N_FOLDERS; i++) {
		char before[3001];

		snprintf(before, sizeof(before), "%.3000s", paths[i - 1]);
		snprintf(paths[i], sizeof(paths[i]), "%s/%s", before, newlines);
	}
	printed += N_FOLDERS * (1 + 4 * N_NEWLINES) + 1;
	assert_in_range(column - printed, 1, 200);
	memset(letters, 'x', column - printed);
	snprintf(paths[N_FOLDERS], sizeof(paths[0]), "%.3000s/%s" FAKE, paths[N_FOLDERS - 1],
		 letters);
}

static void *map_file(void)
{
	void *map;
	int fd;

	for (int i = 0; i < N_FOLDERS; i++)
		assert_int_equal(mkdir(paths[i], 0700), 0);
	fd = open(paths[N_FOLDERS], O_RDWR | O_CREAT | O_CLOEXEC, 0700);
	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, 4096), 0);
	map = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, fd, 0);
	assert_true(map != MAP_FAILED);
	close(fd);
	return map;
}

static int remove_all(void **state)
{
	(void)state;
	unlink(paths[N_FOLDERS]);
	for (int i = N_FOLDERS - 1; i >= 0; i--)
		rmdir(paths[i]);
	return rmdir(root);
}

struct seen {
	uint64_t at;
	int n_there, n_fake;
	size_t length;
};

static bool look(const struct sf_mapping *mapping, void *arg)
{
	struct seen *seen = arg;

	seen->n_fake += mapping->start == 0x1000;
	if (mapping->start == seen->at) {
		seen->n_there++;
		seen->length = strlen(mapping->path);
	}
	return true;
}

static void a_long_name_is_one_mapping(void **state)
{
	const size_t column = 4096 + 256 - 1;
	struct seen seen = { 0 };
	void *map;

	(void)state;
	assert_non_null(mkdtemp(root));
	make_path(column);
	map = map_file();
	seen.at = (uintptr_t)map;
	assert_true(sf_process_maps(getpid(), look, &seen, NULL));
	munmap(map, 4096);
	assert_int_equal(seen.n_there, 1);
	assert_int_equal(seen.n_fake, 0);
	assert_int_equal(seen.length, column - BEFORE_PATH + strlen(FAKE));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(a_long_name_is_one_mapping, remove_all),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
