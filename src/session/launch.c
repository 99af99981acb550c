/* SPDX-License-Identifier: Apache-2.0 */
#include "session/launch.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* In the child, between fork and exec: waits for the word, and reports a failing exec. */
static _Noreturn void run_child(char *const *argv, int go_fd, int error_fd)
{
	char word;
	int error;

	if (read(go_fd, &word, 1) != 1)
		_exit(127);
	execvp(argv[0], argv);
	error = errno;
	if (write(error_fd, &error, sizeof(error)) < 0)
		_exit(126);
	_exit(127);
}

bool sf_launch(char *const *argv, struct sf_launched *ret, struct sf_error *err)
{
	int go[2], error[2];
	pid_t pid;

	if (pipe2(go, O_CLOEXEC) != 0)
		return sf_fail_os(err, "cannot create a pipe");
	if (pipe2(error, O_CLOEXEC) != 0) {
		close(go[0]);
		close(go[1]);
		return sf_fail_os(err, "cannot create a pipe");
	}
	pid = fork();
	if (pid == 0) {
		close(go[1]); /* so that we end if our parent does */
		run_child(argv, go[0], error[1]);
	}
	close(go[0]);
	close(error[1]);
	if (pid < 0) {
		close(go[1]);
		close(error[0]);
		return sf_fail_os(err, "cannot start '%s'", argv[0]);
	}
	*ret = (struct sf_launched){ .pid = pid, .go_fd = go[1], .error_fd = error[0] };
	return true;
}

bool sf_launch_go(struct sf_launched *launched, const char *name, struct sf_error *err)
{
	int error = 0;
	bool told = write(launched->go_fd, "", 1) == 1;
	ssize_t n = told ? read(launched->error_fd, &error, sizeof(error)) : -1;

	close(launched->go_fd);
	close(launched->error_fd);
	if (told && n == 0) /* closed by a successful exec */
		return true;
	waitpid(launched->pid, NULL, 0);
	sf_fail(err, SF_E_INPUT, "cannot start '%s': %s", name, strerror(error));
	return error == ENOENT ? sf_fail_hint(err, "Is it in PATH? A script needs its path: ./%s", name)
			       : false;
}

int sf_launch_wait(const struct sf_launched *launched)
{
	int status;

	while (waitpid(launched->pid, &status, 0) < 0) {
		if (errno != EINTR)
			return -1;
	}
	return status;
}
