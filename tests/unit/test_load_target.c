/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A process that an agent is to be loaded into: its folders are found below its own root, and SIGQUIT
 * comes to the program that was looked at, and to no other. No Java virtual machine is needed: who
 * catches SIGQUIT is taken for one until it is to answer.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "folder.h"
#include "runtime/load/load.h"
#include "runtime/hotspot/load_target.h"

#define AGAIN "--again"  /* this program, as the one that an exec leads to */

static volatile sig_atomic_t quit;

static void on_quit(int number)
{
	(void)number;
	quit = 1;
}

static void catch_quit(void)
{
	signal(SIGQUIT, on_quit);
}

/* --- the child --- */

struct child {
	pid_t pid;
	int orders, news;    /* bytes to it and from it */
};

static char order(const struct child *child)
{
	char byte = 0;

	return read(child->orders, &byte, 1) == 1 ? byte : 0;
}

static void tell(const struct child *child)
{
	if (write(child->news, "!", 1) != 1)
		_exit(90);
}

static bool enter(const char *root)
{
	if (!root)
		return true;
	/* Not as root: one's own user namespace gives the right to it. */
	if (geteuid() != 0 && unshare(CLONE_NEWUSER) != 0)
		return false;
	return chroot(root) == 0 && chdir("/") == 0;
}

static void child_main(const struct child *ends, const char *root, char *const *then)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	catch_quit();
	if (!enter(root))
		_exit(91);
	tell(ends);
	if (order(ends)) /* go on as another program */
		execv(then[0], then);
	_exit(92);
}

static char self[4096], numbers[2][16]; /* this program; `orders` and `news` of the child, for what it becomes */

/* Runs in `root` (NULL: ours), and as `then` when it is told to. */
static struct child start(const char *root, char *const *then)
{
	int to[2], from[2];
	struct child child;
	char byte;

	/* Not close-on-exec: the next program has them, too. */
	assert_int_equal(pipe(to) | pipe(from), 0);
	snprintf(numbers[0], sizeof(numbers[0]), "%d", to[0]);
	snprintf(numbers[1], sizeof(numbers[1]), "%d", from[1]);
	child.pid = fork();
	if (child.pid == 0) {
		close(to[1]);
		close(from[0]);
		child_main(&(struct child){ .orders = to[0], .news = from[1] }, root, then);
	}
	close(to[0]);
	close(from[1]);
	child.orders = to[1];
	child.news = from[0];
	if (read(child.news, &byte, 1) != 1) {
		waitpid(child.pid, NULL, 0);
		child.pid = -1;
	}
	return child;
}

static int finish(struct child *child)
{
	int status = 0;

	if (child->pid > 0) {
		kill(child->pid, SIGKILL);
		waitpid(child->pid, &status, 0);
	}
	close(child->orders);
	close(child->news);
	child->pid = -1;
	return status;
}

/* --- folders --- */

static char folder[64];

static int make_folder(void **state)
{
	(void)state;
	snprintf(folder, sizeof(folder), "/var/tmp/test_load_target.XXXXXX");
	return mkdtemp(folder) ? 0 : -1;
}

static int remove_folder(void **state)
{
	(void)state;
	return folder_remove(folder);
}

/*
 * A root folder in which /tmp and /link are absolute links to `folder`/outside, which is there in it and outside of it;
 * a file is only outside.
 */
static void make_root(char root[128])
{
	char command[1024];

	snprintf(root, 128, "%s/root", folder);
	snprintf(command, sizeof(command),
		 "cd %s && mkdir -p outside root%s/outside && echo library > outside/lib.so && "
		 "ln -s %s/outside root/tmp && ln -s %s/outside root/link",
		 folder, folder, folder, folder);
	assert_int_equal(system(command), 0);
}

static bool is_same(int fd, const char *path)
{
	struct stat a, b;

	assert_int_equal(fstat(fd, &a) | stat(path, &b), 0);
	return a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

static void test_its_tmp_is_below_its_root(void **state)
{
	struct sf_load_target target;
	struct sf_load_library library;
	struct sf_error err = { 0 };
	char root[128], inside[256], path[128];
	struct child child;
	int fd;

	(void)state;
	make_root(root);
	child = start(root, NULL);
	if (child.pid < 0) {
		finish(&child);
		skip(); /* neither root nor user namespaces */
	}
	assert_true(sf_load_target_open(child.pid, &target, &err));
	snprintf(inside, sizeof(inside), "%s%s/outside", root, folder);
	snprintf(path, sizeof(path), "%s/outside", folder);
	assert_true(is_same(target.tmp, inside));
	assert_false(is_same(target.tmp, path));

	/* Nor does it see a file that a link there leads to here: it gets a copy, and that in its own /tmp. */
	snprintf(path, sizeof(path), "%s/outside/lib.so", folder);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	assert_true(fd >= 0);
	assert_true(sf_load_library_show(&target, "/link/lib.so", fd, &library, &err));
	assert_string_not_equal(library.copy, "");
	assert_int_equal(faccessat(target.tmp, library.copy, F_OK, 0), 0);
	sf_load_library_hide(&target, &library);
	assert_int_equal(faccessat(target.tmp, library.copy, F_OK, 0), -1);
	close(fd);
	sf_load_target_close(&target);
	finish(&child);
}

static void test_a_tmp_that_is_no_folder(void **state)
{
	struct sf_load_target target;
	struct sf_error err = { 0 };
	char root[128], command[512];
	struct child child;

	(void)state;
	snprintf(root, sizeof(root), "%s/other", folder);
	snprintf(command, sizeof(command), "mkdir %s && ln -s ../../../../../../etc/passwd %s/tmp", root, root);
	assert_int_equal(system(command), 0);
	child = start(root, NULL);
	if (child.pid < 0) {
		finish(&child);
		skip();
	}
	assert_false(sf_load_target_open(child.pid, &target, &err));
	assert_non_null(strstr(err.text, "/tmp"));
	sf_load_target_close(&target);
	finish(&child);
}

/* --- SIGQUIT --- */

/* The target becomes `then` after it was looked at, and right before the signal. False: the signal ended it. */
static bool survives(char *const *then, bool *quit_ret)
{
	struct sf_load_target target;
	struct sf_error err = { 0 };
	struct child child = start(NULL, then);
	char byte = 0;
	int fd, status;

	assert_true(child.pid > 0);
	assert_true(sf_load_target_open(child.pid, &target, &err));
	assert_int_equal(write(child.orders, "x", 1), 1);
	assert_int_equal(read(child.news, &byte, 1), 1); /* the other one runs */
	fd = sf_jvm_load_connect(&target, &err);
	assert_int_equal(fd, -1);
	assert_non_null(strstr(err.text, "another program"));
	if (write(child.orders, "y\n", 2) != 2 || read(child.news, &byte, 1) != 1)
		byte = 'q';
	*quit_ret = byte == 'q';
	sf_load_target_close(&target);
	status = finish(&child);
	return !(WIFSIGNALED(status) && WTERMSIG(status) == SIGQUIT);
}

/* It does nothing about signals: SIGQUIT ends it. */
static void test_a_program_that_does_not_catch_it(void **state)
{
	char *const then[] = { (char[]){ "/bin/sh" }, (char[]){ "-c" },
			       (char[]){ "printf ! >&$0; read x <&$1; printf s >&$0; read x <&$1" },
			       numbers[1], numbers[0], NULL };
	bool got;

	(void)state;
	signal(SIGPIPE, SIG_IGN);
	assert_true(survives(then, &got));
	assert_false(got);
}

/* Its handler is for something else. */
static void test_a_program_that_catches_it(void **state)
{
	char *const then[] = { self, (char[]){ AGAIN }, numbers[0], numbers[1], NULL };
	bool got;

	(void)state;
	signal(SIGPIPE, SIG_IGN);
	assert_true(survives(then, &got));
	assert_false(got);
}

static int again(char **args)
{
	const struct child ends = { .orders = atoi(args[2]), .news = atoi(args[3]) };

	catch_quit();
	tell(&ends);
	while (!order(&ends) && errno == EINTR)
		;
	return write(ends.news, quit ? "q" : "s", 1) == 1 && pause() ? 0 : 1;
}

int main(int n, char **args)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_its_tmp_is_below_its_root),
		cmocka_unit_test(test_a_tmp_that_is_no_folder),
		cmocka_unit_test(test_a_program_that_does_not_catch_it),
		cmocka_unit_test(test_a_program_that_catches_it),
	};
	ssize_t length = readlink("/proc/self/exe", self, sizeof(self) - 1);

	if (n == 4 && strcmp(args[1], AGAIN) == 0)
		return again(args);
	return length > 0 ? cmocka_run_group_tests(tests, make_folder, remove_folder) : 1;
}
