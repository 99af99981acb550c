/* SPDX-License-Identifier: Apache-2.0 */
/* Drafts of output files, in a folder of their own: what is left of one when a signal ends the program. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>
#include <dirent.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/output_file.h"

static char folder[] = "/tmp/sf-output-file-XXXXXX";
static char path[64];

static int set_up(void **state)
{
	(void)state;
	if (!mkdtemp(folder))
		return -1;
	snprintf(path, sizeof(path), "%s/out", folder);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	unlink(path);
	return rmdir(folder);
}

static unsigned count_files(void)
{
	DIR *files = opendir(folder);
	unsigned n = 0;

	assert_non_null(files);
	for (const struct dirent *file; (file = readdir(files));)
		n += file->d_name[0] != '.';
	closedir(files);
	return n;
}

/* A program that gets the signal while it has a draft, or when that is finished. Returns its wait status. */
static int end_by(int signal_number, bool finished, bool ignored)
{
	struct sf_draft draft;
	int status;
	pid_t child = fork();

	assert_true(child >= 0);
	if (!child) {
		signal(signal_number, ignored ? SIG_IGN : SIG_DFL);
		if (!sf_draft_open(&draft, path, NULL) || count_files() != 1 || (finished && !sf_draft_finish(&draft, NULL)))
			_exit(99);
		raise(signal_number);
		sf_draft_abandon(&draft);
		_exit(0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	return status;
}

static void test_a_signal_leaves_no_half_file(void **state)
{
	static const int ends[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT };

	(void)state;
	for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++) {
		const int status = end_by(ends[i], false, false);

		assert_true(WIFSIGNALED(status) && WTERMSIG(status) == ends[i]);
		assert_int_equal(count_files(), 0);
	}
}

static void test_a_signal_that_is_ignored_ends_nothing(void **state)
{
	(void)state;
	assert_int_equal(end_by(SIGHUP, false, true), 0);
	assert_int_equal(count_files(), 0);
}

static void test_a_whole_file_stays(void **state)
{
	int status;

	(void)state;
	status = end_by(SIGTERM, true, false);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM);
	assert_int_equal(count_files(), 1);
	assert_int_equal(access(path, F_OK), 0);
}

static void test_an_empty_name_is_said(void **state)
{
	struct sf_draft draft;
	struct sf_error err;

	(void)state;
	assert_false(sf_draft_open(&draft, "", &err));
	assert_non_null(strstr(err.text, "is empty"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_signal_leaves_no_half_file),
		cmocka_unit_test(test_a_signal_that_is_ignored_ends_nothing),
		cmocka_unit_test(test_a_whole_file_stays),
		cmocka_unit_test(test_an_empty_name_is_said),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
