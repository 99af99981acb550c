/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Forks while another thread looks for translations: the locks under which libc does that stay locked in the children,
 * which never look for one, live for a moment, and end in order.
 *
 * in_translates [TURNS]
 */
#include <libintl.h>
#include <locale.h>
#include <pthread.h>
#include <sys/wait.h>

#include "program.h"

/* In other locales than "C" only. Each domain is one more in the list that is searched under the lock. */
static void *translate(void *arg)
{
	char domain[32];

	(void)arg;
	for (unsigned i = 0; i < 100000; i++) {
		snprintf(domain, sizeof(domain), "domain%u", i);
		KEEP(dgettext(domain, "a word"));
	}
	return NULL;
}

static bool fork_and_end(unsigned turn)
{
	pid_t child = fork();
	int status;

	if (child == 0) {
		bounded(100);
		sleep_ns(NS_PER_S / 50);
		exit(turn % 100);
	}
	return waitpid(child, &status, 0) == child && WIFEXITED(status) &&
	       WEXITSTATUS(status) == (int)(turn % 100);
}

int main(int argc, char **argv)
{
	unsigned turns = argument(argc, argv, 1, 30), bad = 0;
	pthread_t thread;

	bounded(200);
	if (!setlocale(LC_ALL, "C.UTF-8")) {
		printf("there is no locale C.UTF-8\n");
		return 77;
	}
	if (pthread_create(&thread, NULL, translate, NULL) != 0)
		return 1;
	for (unsigned i = 0; i < turns; i++)
		bad += !fork_and_end(i);
	printf("turns %u bad %u\n", turns, bad);
	fflush(stdout);
	_exit(bad ? 1 : 0);
}
