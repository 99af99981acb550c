/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The code map of a process that executes another program, soon after the map was read at a price that forbids reading
 * it again.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "asleep.h"
#include "target/process.h"

#define DEAR_NS UINT64_C(1000000000) /* for which reading the map is put off, several times */
#define SOON_US 2000                 /* another program is looked for after 1 ms */

static void load_nothing(struct sf_image *image)
{
	(void)image;
}

/* Executes `sleep` when `go` is closed; `done` is closed by that. */
static pid_t start(int *go_ret, int *done_ret)
{
	int go[2], done[2];
	char byte;
	pid_t pid;

	assert_int_equal(pipe2(go, O_CLOEXEC), 0);
	assert_int_equal(pipe2(done, O_CLOEXEC), 0);
	pid = fork();
	if (pid == 0) {
		close(go[1]);
		if (read(go[0], &byte, 1) == 0)
			execlp("sleep", "sleep", "60", NULL);
		_exit(127);
	}
	close(go[0]);
	close(done[1]);
	*go_ret = go[1];
	*done_ret = done[0];
	return pid;
}

static bool is_random(void)
{
	FILE *file = fopen("/proc/sys/kernel/randomize_va_space", "re");
	int value = 1;

	if (file && fscanf(file, "%d", &value) != 1)
		value = 1;
	if (file)
		fclose(file);
	return value != 0;
}

/* Its first refreshes are made, and reading it is dear. */
static void put_off(struct sf_process *process)
{
	process->n_at_once = 0;
	process->refresh_cost_ns = DEAR_NS;
	usleep(SOON_US);
}

static void test_another_program_is_read_at_once(void **state)
{
	static const struct sf_image_loader none = { .load = load_nothing, .unload = load_nothing };
	struct sf_images *images = sf_images_create(&none);
	struct sf_process process;
	int go, done;
	char byte;
	pid_t pid;

	(void)state;
	if (!is_random()) /* programs have the same addresses then: nothing tells them apart */
		skip();
	pid = start(&go, &done);
	sf_process_init(&process, pid);
	assert_true(sf_process_refresh(&process, images, NULL));
	put_off(&process);
	assert_false(sf_process_refresh_stale(&process, images));
	close(go);
	assert_int_equal(read(done, &byte, 1), 0);
	wait_until_asleep(pid); /* an exec closes files before it maps the program's */
	assert_true(sf_process_refresh_stale(&process, images));
	assert_true(process.n_at_once > 0); /* as for a new program */
	put_off(&process);
	assert_false(sf_process_refresh_stale(&process, images));
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	close(done);
	sf_process_deinit(&process);
	sf_images_destroy(images);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_another_program_is_read_at_once) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
