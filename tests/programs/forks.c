/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A storm of forks: children that exit at once, that end in order (exit() runs what libraries do at the end), that
 * exec, that are vforked, and that fork in their turn. Every child's exit status must arrive as it was sent.
 *
 * forks [SECONDS]
 */
#include <spawn.h>
#include <sys/wait.h>

#include "program.h"

extern char **environ;

static bool ended_with(pid_t child, int wanted)
{
	int status;

	if (waitpid(child, &status, 0) != child) {
		perror("waitpid");
		return false;
	}
	if (!WIFEXITED(status) || WEXITSTATUS(status) != wanted) {
		printf("child %d: status %#x where exit %d was due\n", child, status, wanted);
		return false;
	}
	return true;
}

static bool fork_and_exit(unsigned turn)
{
	pid_t child = fork();

	if (child == 0)
		_exit(turn % 100);
	return ended_with(child, turn % 100);
}

static bool fork_and_end(unsigned turn)
{
	pid_t child = fork();

	if (child == 0)
		exit(turn % 100);
	return ended_with(child, turn % 100);
}

static bool fork_and_exec(void)
{
	pid_t child = fork();

	if (child == 0) {
		execl("/bin/false", "false", (char *)NULL);
		_exit(127);
	}
	return ended_with(child, 1);
}

static bool spawn(void)
{
	char *argv[] = { (char *)"true", NULL };
	pid_t child;

	if (posix_spawn(&child, "/bin/true", NULL, NULL, argv, environ) != 0)
		return false;
	return ended_with(child, 0);
}

static bool fork_twice(void)
{
	pid_t child = fork();

	if (child == 0) {
		pid_t grandchild = fork();

		if (grandchild == 0)
			_exit(7);
		_exit(ended_with(grandchild, 7) ? 8 : 9);
	}
	return ended_with(child, 8);
}

int main(int argc, char **argv)
{
	double seconds = argument(argc, argv, 1, 3);
	int64_t end = now_ns() + seconds * NS_PER_S;
	unsigned turns = 0, bad = 0;

	bounded(60 + 10 * seconds);
	ready();
	for (; now_ns() < end; turns++) {
		bad += !fork_and_exit(turns);
		bad += !fork_and_end(turns);
		bad += !fork_and_exec();
		bad += !spawn();
		bad += !fork_twice();
	}
	printf("turns %u bad %u\n", turns, bad);
	return bad ? 1 : 0;
}
