/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The first process of a PID namespace, which moves its children into another one: its child has the number 1, too, and ends by
 * exit(). To be started so: unshare --pid --fork --mount-proc in_first. Its status is that of its child.
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

int main(void)
{
	pid_t child;
	int status;

	bounded(60);
	burn_ns(NS_PER_S / 5);
	if (unshare(CLONE_NEWPID)) {
		perror("unshare");
		return 2;
	}
	child = fork();
	if (child == 0) {
		burn_ns(NS_PER_S / 20);
		exit(getpid() == 1 ? STATUS : 3);
	}
	status = wait_for(child);
	printf("%d: status %x\n", (int)getpid(), status);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 4;
}
