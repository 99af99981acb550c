/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The files behind a process's memory. Where /proc/PID/map_files is closed (to all but root), a file is found by its path,
 * and must still be the one that is mapped. Mappings here are made up, so that map_files has none of them for root either.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>
#include <cmocka.h>

#include "os/process.h"

static char folder[64], path[96], other[96];

static void write_file(const char *name, const char *text)
{
	FILE *file = fopen(name, "w");

	assert_non_null(file);
	fputs(text, file);
	assert_int_equal(fclose(file), 0);
}

static int set_up(void **state)
{
	(void)state;
	strcpy(folder, "/tmp/sf-test-XXXXXX");
	assert_non_null(mkdtemp(folder));
	snprintf(path, sizeof(path), "%s/library.so", folder);
	snprintf(other, sizeof(other), "%s/new.so", folder);
	write_file(path, "old");
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	unlink(path);
	unlink(other);
	rmdir(path);
	return rmdir(folder);
}

/* A mapping of the file that is at this path now, at an address where this process has none. */
static struct sf_mapping mapping_of(const char *file)
{
	struct stat status;

	assert_int_equal(stat(file, &status), 0);
	return (struct sf_mapping){ .start = 0x1000, .end = 0x2000, .inode = status.st_ino,
				    .device = status.st_dev, .path = file };
}

/* The contents of the opened file, "" and errno: none was. */
static const char *opened(const struct sf_mapping *mapping)
{
	static char text[16];
	const int fd = sf_process_open_mapping(getpid(), mapping);
	ssize_t n;

	text[0] = 0;
	if (fd < 0)
		return text;
	n = read(fd, text, sizeof(text) - 1);
	assert_true(n > 0);
	text[n] = 0;
	assert_true(fcntl(fd, F_GETFD) & FD_CLOEXEC);
	close(fd);
	return text;
}

static void the_file_is_found_by_its_path(void **state)
{
	struct sf_mapping mapping = mapping_of(path);
	(void)state;

	assert_string_equal(opened(&mapping), "old");
}

static void a_replaced_file_is_not_taken(void **state)
{
	struct sf_mapping mapping = mapping_of(path);
	(void)state;

	write_file(other, "new");
	assert_int_equal(rename(other, path), 0);
	assert_string_equal(opened(&mapping), "");
	assert_int_equal(errno, ESTALE);
}

static void what_is_no_file_is_not_taken(void **state)
{
	struct sf_mapping mapping;
	(void)state;

	assert_int_equal(unlink(path), 0);
	assert_int_equal(mkfifo(path, 0600), 0);
	mapping = mapping_of(path);
	assert_string_equal(opened(&mapping), ""); /* and no reader waits for a writer */
	assert_int_equal(unlink(path), 0);
	assert_int_equal(mkdir(path, 0700), 0);
	mapping = mapping_of(path);
	assert_string_equal(opened(&mapping), "");
	mapping.path = "[vdso]";
	assert_string_equal(opened(&mapping), "");
	assert_int_equal(errno, ENOENT);
	mapping.path = "";
	assert_string_equal(opened(&mapping), "");
}

/* --- the map --- */

struct wanted {
	uint64_t start;
	struct sf_mapping found;
	char path[128];
};

static bool find(const struct sf_mapping *mapping, void *arg)
{
	struct wanted *wanted = arg;

	if (mapping->start != wanted->start)
		return true;
	wanted->found = *mapping;
	snprintf(wanted->path, sizeof(wanted->path), "%s", mapping->path);
	return false;
}

static struct wanted map_line(void *bytes)
{
	struct wanted wanted = { .start = (uintptr_t)bytes };
	struct sf_error err;

	assert_false(sf_process_maps(getpid(), find, &wanted, &err)); /* it was stopped: found */
	return wanted;
}

/* The device as the kernel writes it, which not on every file system is what stat() gives. */
static uint64_t device_of(const void *bytes)
{
	FILE *maps = fopen("/proc/self/maps", "re");
	unsigned long long start = 0;
	unsigned high = 0, low = 0;
	char line[512];

	assert_non_null(maps);
	while (start != (uintptr_t)bytes && fgets(line, sizeof(line), maps))
		assert_int_equal(sscanf(line, "%llx-%*x %*s %*x %x:%x", &start, &high, &low), 3);
	fclose(maps);
	assert_int_equal(start, (uintptr_t)bytes);
	return makedev(high, low);
}

static void each_column_is_read(void **state)
{
	const size_t page = (size_t)sysconf(_SC_PAGESIZE);
	const int fd = open(path, O_RDWR);
	struct wanted wanted;
	struct stat status;
	uint8_t *bytes;
	(void)state;

	assert_int_equal(ftruncate(fd, (off_t)(3 * page)), 0);
	bytes = mmap(NULL, 2 * page, PROT_READ, MAP_PRIVATE, fd, (off_t)page);
	assert_ptr_not_equal(bytes, MAP_FAILED);
	assert_int_equal(fstat(fd, &status), 0);
	wanted = map_line(bytes);
	assert_int_equal(wanted.found.end - wanted.found.start, 2 * page);
	assert_int_equal(wanted.found.offset, page);
	assert_int_equal(wanted.found.inode, status.st_ino);
	assert_int_equal(wanted.found.device, device_of(bytes));
	assert_true(wanted.found.readable && !wanted.found.executable && !wanted.found.deleted);
	assert_string_equal(wanted.path, path);
	assert_int_equal(mprotect(bytes, 2 * page, PROT_EXEC), 0);
	assert_int_equal(unlink(path), 0);
	wanted = map_line(bytes);
	assert_true(!wanted.found.readable && wanted.found.executable && wanted.found.deleted);
	assert_string_equal(wanted.path, path); /* without the mark */
	munmap(bytes, 2 * page);
	close(fd);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(the_file_is_found_by_its_path),
		TEST(a_replaced_file_is_not_taken),
		TEST(what_is_no_file_is_not_taken),
		TEST(each_column_is_read),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
