/* SPDX-License-Identifier: Apache-2.0 */
/* Forks children that end at once, and says how much memory of its own each of them gets a copy of. */
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "in_program.h"

int main(void)
{
	char line[256];
	FILE *status;

	bounded(60);
	for (int i = 0; i < 50; i++) {
		pid_t pid = fork();

		if (pid == 0)
			_exit(0);
		waitpid(pid, NULL, 0);
	}
	status = fopen("/proc/self/status", "r");
	while (status && fgets(line, sizeof(line), status)) {
		if (strncmp(line, "RssAnon:", 8) == 0)
			printf("anonymous %ld\n", atol(line + 8));
	}
	return 0;
}
