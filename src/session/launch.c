/* SPDX-License-Identifier: Apache-2.0 */
/* Launches the command that is to be recorded, and lets it run when the recording is ready. */
#include "session/launch.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/whole_io.h"
#include "elf/program.h"
#include "os/rights.h"

/*
 * The message through the pipe: a uint32_t, and so many bytes of "NAME=value" texts, each with its zero.
 * The message is smaller than a pipe's buffer, so that the write never waits for the child.
 */
#define MAX_ENVIRONMENT (32u << 10)

/* In the child: takes the word and what comes into the environment with it. */
static bool take_go(int go_fd)
{
	static char texts[MAX_ENVIRONMENT + 1]; /* zero behind the last, and part of the environment
						 * from now on */
	uint32_t size;

	if (!sf_read_all(go_fd, &size, sizeof(size)) || size > MAX_ENVIRONMENT ||
	    !sf_read_all(go_fd, texts, size))
		return false;
	for (char *text = texts; text < texts + size; text += strlen(text) + 1) {
		if (putenv(text) != 0)
			return false;
	}
	return true;
}

/*
 * A process whose file gave it rights belongs to root (/proc/PID), and nobody without such rights may trace it. The
 * child is like the command that it will be: without them, and its user's. It says when it is so.
 */
static bool be_the_users(int error_fd)
{
	const int none = 0;

	if (!sf_rights_are_from_file())
		return true;
	sf_rights_drop();
	prctl(PR_SET_DUMPABLE, 1);
	return write(error_fd, &none, sizeof(none)) == sizeof(none);
}

/* In the child, between fork and exec: waits for the word, and reports a failing exec. */
static _Noreturn void run_child(char *const *argv, int go_fd, int error_fd)
{
	int error;

	if (!be_the_users(error_fd) || !take_go(go_fd))
		_exit(127);
	execvp(argv[0], argv);
	error = errno;
	if (write(error_fd, &error, sizeof(error)) < 0)
		_exit(126);
	_exit(127);
}

/* 0: its end was closed, by a successful exec. A signal that ends the recording does not end this wait: it is short. */
static ssize_t read_error(int fd, int *ret)
{
	ssize_t n;

	do
		n = read(fd, ret, sizeof(*ret));
	while (n < 0 && errno == EINTR);
	return n;
}

bool sf_launch(char *const *argv, struct sf_launched *ret, struct sf_error *err)
{
	int go[2], error[2], none;
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
	if (sf_rights_are_from_file())
		read_error(error[0], &none);
	*ret = (struct sf_launched){ .pid = pid, .program = argv[0], .go_fd = go[1], .error_fd = error[0] };
	return true;
}

/* "LD_PRELOAD=...", the caller's to free; NULL when memory ran out. */
static char *preload_text(const char *program, const char *library)
{
	const char *inherited = getenv("LD_PRELOAD");
	struct sf_program_file file = { 0 };
	const char *first = sf_program_look_named(program, &file) ? file.sanitizer : "";
	char *text;

	if (asprintf(&text, "LD_PRELOAD=%s%s%s%s%s", first, *first ? ":" : "", library,
		     inherited && *inherited ? ":" : "", inherited ? inherited : "") < 0)
		return NULL;
	return text;
}

struct message {
	uint32_t size;
	char texts[MAX_ENVIRONMENT];
};

/* False: there is no room for it. */
static bool add_text(struct message *message, const char *text)
{
	const size_t size = text ? strlen(text) + 1 : 0;

	if (size > MAX_ENVIRONMENT - message->size)
		return false;
	if (size)
		memcpy(message->texts + message->size, text, size);
	message->size += (uint32_t)size;
	return true;
}

/* Sends the message for take_go(). False: the texts are too long, or the child has ended. */
static bool send_go(const struct sf_launched *launched, const struct sf_child_needs *needs)
{
	SF_CLEANUP(free) char *preload = needs->library ? preload_text(launched->program, needs->library) : NULL;
	struct message message = { .size = 0 };
	size_t size;

	if ((needs->library && !preload) || !add_text(&message, preload) || !add_text(&message, launched->variable))
		return false;
	for (size_t i = 0; needs->variables[i]; i++) {
		if (!add_text(&message, needs->variables[i]))
			return false;
	}
	size = offsetof(struct message, texts) + message.size;
	return write(launched->go_fd, &message, size) == (ssize_t)size;
}

/* Of a command that execvp() does not find. A path needs no advice, unless something is there. */
static bool advise(const char *name, struct sf_error *err)
{
	if (*name && strspn(name, "0123456789") == strlen(name))
		return sf_fail_hint(err, "A process that runs goes behind -p: stillframe record -p %s", name);
	if (!strchr(name, '/'))
		return sf_fail_hint(err, "Is it in PATH? A script needs its path: ./%s", name);
	if (access(name, F_OK) == 0)
		return sf_fail_hint(err, "The file is there. The interpreter in its first line, or its dynamic loader, is not.");
	return false;
}

bool sf_launch_go(struct sf_launched *launched, const char *name, const struct sf_child_needs *needs,
		  struct sf_error *err)
{
	int error = 0;
	bool sent = send_go(launched, needs);
	ssize_t n = 0;

	close(launched->go_fd);
	if (sent)
		n = read_error(launched->error_fd, &error);
	close(launched->error_fd);
	if (sent && n == 0)
		return true;
	sf_launch_wait(launched);
	if (!sent)
		return sf_fail(err, SF_E_INPUT,
			       "cannot start '%s': its environment would be too long, or it "
			       "was killed before it began",
			       name);
	launched->exec_error = error;
	sf_fail(err, SF_E_INPUT, "cannot start '%s': %s", name, sf_os_error(error));
	return error == ENOENT ? advise(name, err) : false;
}

void sf_launch_cancel(struct sf_launched *launched)
{
	close(launched->go_fd);
	close(launched->error_fd);
	sf_launch_wait(launched);
}

int sf_launch_poll(const struct sf_launched *launched)
{
	int status;

	return waitpid(launched->pid, &status, WNOHANG) == launched->pid ? status : -1;
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
