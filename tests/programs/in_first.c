/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The first process of a PID namespace, which moves its children into another one: its child has the number 1, too, and ends by
 * exit(), or executes this program again. To be started so: unshare --pid --fork --mount-proc in_first HOW. Its status is that of
 * its child.
 *
 * in_first exit | exec | done
 */
#include <sched.h>
#include <sys/wait.h>

#include "in_program.h"

#define STATUS 7
#define N_LOOKS 1000 /* of 10 ms */

static int wait_for(pid_t child)
{
	int status = 0;

	for (int i = 0; i < N_LOOKS; i++) {
		if (waitpid(child, &status, WNOHANG) == child)
			return status;
		usleep(10000);
	}
	kill(child, SIGKILL);
	waitpid(child, &status, 0);
	return status;
}

static void be_child(char **argv)
{
	char *const words[] = { argv[0], "done", NULL };

	burn_ns(NS_PER_S / 20);
	if (strcmp(argv[1], "exec") == 0)
		execv(argv[0], words);
	exit(getpid() == 1 ? STATUS : 3);
}

int main(int argc, char **argv)
{
	pid_t child;
	int status;

	bounded(60);
	if (argc < 2)
		return 2;
	if (strcmp(argv[1], "done") == 0) {
		printf("%s\n", getenv("STILLFRAME") ? "with an agent" : "without");
		return STATUS;
	}
	burn_ns(NS_PER_S / 5);
	if (unshare(CLONE_NEWPID)) {
		perror("unshare");
		return 2;
	}
	child = fork();
	if (child == 0)
		be_child(argv);
	status = wait_for(child);
	printf("%d: status %x\n", (int)getpid(), status);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 4;
}
