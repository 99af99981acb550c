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
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "os/process.h"
#include "refused.h"

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

/* --- executable mappings alone --- */

#define MAX_CODE 64

struct code {
	size_t n;
	struct sf_mapping all[MAX_CODE];
	char paths[MAX_CODE][2 * PATH_MAX];
};

static bool note_code(const struct sf_mapping *mapping, void *arg)
{
	struct code *code = arg;

	if (!mapping->executable || strcmp(mapping->path, "[vsyscall]") == 0 || code->n == MAX_CODE)
		return true;
	code->all[code->n] = *mapping;
	snprintf(code->paths[code->n++], sizeof(code->paths[0]), "%s", mapping->path);
	return true;
}

static bool is_same(const struct code *code, const struct code *listed, size_t i)
{
	const struct sf_mapping *a = &code->all[i], *b = &listed->all[i];

	return a->start == b->start && a->end == b->end && a->offset == b->offset && a->inode == b->inode && a->device == b->device &&
	       a->executable && a->readable == b->readable && a->is_own == b->is_own && a->deleted == b->deleted &&
	       strcmp(code->paths[i], strlen(listed->paths[i]) < PATH_MAX ? listed->paths[i] : "") == 0;
}

/* Whether they are those of the list; a path that is too long for a query is left out. */
static bool is_as_listed(pid_t pid)
{
	static struct code code, listed;
	bool same;

	code.n = listed.n = 0;
	same = sf_process_code_maps(pid, note_code, &code, NULL) && sf_process_maps(pid, note_code, &listed, NULL) && code.n == listed.n;
	for (size_t i = 0; same && i < code.n; i++)
		same = is_same(&code, &listed, i);
	return same && code.n > 3;
}

/* A process that has mapped the file in several ways, and deleted it in between. */
static pid_t start_mapping(int fd)
{
	const size_t page = (size_t)sysconf(_SC_PAGESIZE);
	int ready[2];
	pid_t pid;
	char byte;

	assert_int_equal(ftruncate(fd, (off_t)(3 * page)), 0);
	assert_int_equal(pipe(ready), 0);
	pid = fork();
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		mmap(NULL, page, PROT_EXEC, MAP_SHARED, fd, 0);
		mmap(NULL, page, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_SHARED, fd, (off_t)page);
		mmap(NULL, 2 * page, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE, fd, (off_t)page);
		mmap(NULL, page, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		close(ready[1]);
		for (;;)
			pause();
	}
	close(ready[1]);
	assert_int_equal(read(ready[0], &byte, 1), 0);
	close(ready[0]);
	return pid;
}

static void end(pid_t pid)
{
	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
}

static void code_is_as_the_list_has_it(void **state)
{
	const int fd = open(path, O_RDWR);
	const pid_t pid = start_mapping(fd);
	pid_t without;
	int status;
	(void)state;

	assert_true(is_as_listed(pid));
	assert_int_equal(unlink(path), 0);
	assert_true(is_as_listed(pid));
	assert_true(is_as_listed(getpid()));
	without = fork();
	if (without == 0)
		_exit(refuse_call(SYS_ioctl, ENOTTY) && is_as_listed(pid) ? 0 : 1);
	assert_int_equal(waitpid(without, &status, 0), without);
	assert_int_equal(status, 0);
	end(pid);
	close(fd);
}

static void code_of_a_process_that_has_ended(void **state)
{
	const pid_t pid = fork();
	siginfo_t info;
	struct code code = { 0 };
	struct sf_error err;
	(void)state;

	if (pid == 0)
		_exit(0);
	assert_int_equal(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT), 0);
	assert_true(sf_process_code_maps(pid, note_code, &code, NULL)); /* as its list: it is empty */
	assert_int_equal(code.n, 0);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	assert_false(sf_process_code_maps(pid, note_code, &code, &err));
}

#define LEVELS 18

/* A file whose path is longer than PATH_MAX. */
static void a_path_may_be_too_long(void **state)
{
	int folders[LEVELS + 1], fd;
	char name[251];
	pid_t pid;
	(void)state;

	memset(name, 'x', sizeof(name) - 1);
	name[sizeof(name) - 1] = 0;
	folders[0] = open(folder, O_PATH | O_DIRECTORY);
	for (unsigned i = 0; i < LEVELS; i++) {
		assert_int_equal(mkdirat(folders[i], name, 0700), 0);
		folders[i + 1] = openat(folders[i], name, O_PATH | O_DIRECTORY);
	}
	fd = openat(folders[LEVELS], "code", O_RDWR | O_CREAT, 0600);
	assert_true(fd >= 0);
	pid = start_mapping(fd);
	assert_true(is_as_listed(pid));
	end(pid);
	close(fd);
	assert_int_equal(unlinkat(folders[LEVELS], "code", 0), 0);
	for (unsigned i = LEVELS; i-- > 0;) {
		close(folders[i + 1]);
		assert_int_equal(unlinkat(folders[i], name, AT_REMOVEDIR), 0);
	}
	close(folders[0]);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(the_file_is_found_by_its_path),
		TEST(a_replaced_file_is_not_taken),
		TEST(what_is_no_file_is_not_taken),
		TEST(each_column_is_read),
		TEST(code_is_as_the_list_has_it),
		TEST(code_of_a_process_that_has_ended),
		TEST(a_path_may_be_too_long),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
