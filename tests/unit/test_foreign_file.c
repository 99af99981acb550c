/* SPDX-License-Identifier: Apache-2.0 */
/* Names from outside lead to regular files or to nothing; results are written to files of our own. */
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/foreign_file.h"
#include "base/output_file.h"
#include "folder.h"

static char folder[] = "/tmp/stillframe-foreign-XXXXXX";

static const char *at(const char *name)
{
	static char paths[4][256];
	static unsigned next;
	char *path = paths[next++ % 4];

	snprintf(path, sizeof(paths[0]), "%s/%s", folder, name);
	return path;
}

static int set_up(void **state)
{
	(void)state;
	assert_non_null(mkdtemp(folder));
	assert_int_equal(mkdir(at("root"), 0755), 0);
	assert_int_equal(mkdir(at("root/dir"), 0755), 0);
	folder_write(folder, "outside", "outside");
	folder_write(folder, "root/outside", "inside");
	folder_write(folder, "root/dir/file", "file");
	assert_int_equal(symlink("dir/../dir/./file", at("root/link")), 0);
	assert_int_equal(symlink("/outside", at("root/absolute")), 0);
	assert_int_equal(symlink("../outside", at("root/up")), 0);
	assert_int_equal(symlink("loop", at("root/loop")), 0);
	assert_int_equal(symlink("/dev/null", at("root/device")), 0);
	assert_int_equal(mkfifo(at("root/fifo"), 0644), 0);
	assert_int_equal(symlink("fifo", at("root/to-fifo")), 0);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	return folder_remove(folder);
}

/* The contents of the file, or "" when it is refused. */
static const char *text_of(int root, const char *path)
{
	static char text[64];
	ssize_t size;
	int fd = -1;

	if (!sf_foreign_open(root, path, &fd, NULL)) {
		assert_int_equal(fd, -1);
		return "";
	}
	size = read(fd, text, sizeof(text) - 1);
	assert_true(size >= 0);
	close(fd);
	text[size] = 0;
	return text;
}

static void regular_files_are_opened(void **state)
{
	(void)state;
	assert_string_equal(text_of(AT_FDCWD, at("root/dir/file")), "file");
	assert_string_equal(text_of(AT_FDCWD, at("root//dir/./file")), "file");
	assert_string_equal(text_of(AT_FDCWD, at("root/link")), "file");
	assert_string_equal(text_of(AT_FDCWD, at("root/up")), "outside");
}

static void nothing_else_is(void **state)
{
	static const char *const names[] = {
		"/dev/null", "//dev/null", "/./dev/null", "/dev/../dev/null", "/proc/kmsg",
		"/proc/self/maps", "/sys/kernel/uevent_seqnum", "/proc/self", "/", "",
	};
	char name[300];
	(void)state;

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		assert_string_equal(text_of(AT_FDCWD, names[i]), "");
	assert_string_equal(text_of(AT_FDCWD, at("root/device")), "");
	assert_string_equal(text_of(AT_FDCWD, at("root/loop")), "");
	assert_string_equal(text_of(AT_FDCWD, at("root/missing")), "");
	assert_string_equal(text_of(AT_FDCWD, at("root/outside/more")), "");
	memset(name, 'n', sizeof(name) - 1);
	name[sizeof(name) - 1] = 0;
	assert_string_equal(text_of(AT_FDCWD, name), "");
}

/* Opening one would wait for a writer. */
static void a_fifo_is_not_waited_for(void **state)
{
	(void)state;
	alarm(10);
	assert_string_equal(text_of(AT_FDCWD, at("root/fifo")), "");
	assert_string_equal(text_of(AT_FDCWD, at("root/to-fifo")), "");
	alarm(0);
}

static void nothing_leads_out_of_a_root(void **state)
{
	int root = open(at("root"), O_PATH | O_DIRECTORY | O_CLOEXEC);
	(void)state;

	assert_true(root >= 0);
	assert_string_equal(text_of(root, "/outside"), "inside");
	assert_string_equal(text_of(root, "absolute"), "inside");
	assert_string_equal(text_of(root, "/absolute"), "inside");
	assert_string_equal(text_of(root, "up"), "inside");
	assert_string_equal(text_of(root, "../../../outside"), "inside");
	assert_string_equal(text_of(root, "dir/../../../outside"), "inside");
	assert_string_equal(text_of(root, "/link"), "file");
	assert_string_equal(text_of(root, folder), "");
	close(root);
}

static void no_descriptor_is_left(void **state)
{
	int before = dup(0), after;
	(void)state;

	close(before);
	regular_files_are_opened(NULL);
	nothing_else_is(NULL);
	nothing_leads_out_of_a_root(NULL);
	after = dup(0);
	close(after);
	assert_int_equal(before, after);
}

/* --- what is written --- */

static bool may_write(const char *path)
{
	int fd = -1;
	bool may = sf_output_file_open(path, &fd, NULL);

	assert_int_equal(may, fd >= 0);
	assert_int_equal(may, sf_output_file_check(path, NULL));
	if (may)
		close(fd);
	return may;
}

static void output_is_for_its_owner(void **state)
{
	struct stat status;
	(void)state;

	umask(0);
	assert_true(may_write(at("new")));
	assert_int_equal(stat(at("new"), &status), 0);
	assert_int_equal(status.st_mode & 07777, 0600);
	assert_true(may_write(at("new")));
	umask(0277);
	assert_true(may_write(at("narrow")));
	umask(022);
	assert_int_equal(stat(at("narrow"), &status), 0);
	assert_int_equal(status.st_mode & 07777, 0400);
}

static void output_stays_out_of_traps(void **state)
{
	struct stat status;
	(void)state;

	assert_int_equal(symlink("not-there", at("trap")), 0);
	assert_false(may_write(at("trap")));
	assert_int_equal(lstat(at("not-there"), &status), -1);
	assert_int_equal(link(at("outside"), at("second")), 0);
	assert_false(may_write(at("second")));
	assert_int_equal(unlink(at("second")), 0);
	assert_false(may_write(at("root/fifo")));
	assert_false(may_write(at("root")));
	assert_false(may_write("/dev/null"));
}

/* As the threads of the agent have one inside a program: a number there means nothing in the table of the process. */
static void *open_with_own_table(void *arg)
{
	char text[16] = "";
	int fd = -1;

	(void)arg;
	if (unshare(CLONE_FILES) != 0 || close_range(3, ~0u, 0) != 0 ||
	    !sf_foreign_open(AT_FDCWD, at("outside"), &fd, NULL))
		return NULL;
	return read(fd, text, sizeof(text)) == 7 && strcmp(text, "outside") == 0 ? arg : NULL;
}

static void a_thread_may_have_its_own_descriptors(void **state)
{
	pthread_t thread;
	void *result;

	assert_int_equal(pthread_create(&thread, NULL, open_with_own_table, (void *)state), 0);
	assert_int_equal(pthread_join(thread, &result), 0);
	assert_ptr_equal(result, state);
}

static void output_stays_out_of_files_of_others(void **state)
{
	(void)state;
	if (geteuid() != 0)
		skip();
	folder_write(folder, "theirs", "x");
	assert_int_equal(chown(at("theirs"), 12345, 12345), 0);
	assert_false(may_write(at("theirs")));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(regular_files_are_opened),
		cmocka_unit_test(nothing_else_is),
		cmocka_unit_test(a_fifo_is_not_waited_for),
		cmocka_unit_test(nothing_leads_out_of_a_root),
		cmocka_unit_test(no_descriptor_is_left),
		cmocka_unit_test(a_thread_may_have_its_own_descriptors),
		cmocka_unit_test(output_is_for_its_owner),
		cmocka_unit_test(output_stays_out_of_traps),
		cmocka_unit_test(output_stays_out_of_files_of_others),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
