/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Executes itself again, N times, spinning a little before each: the same pid, a new program, and
 * from the second half on with a second thread alive at the moment of the exec (which the kernel kills, and
 * whose id the leader keeps). The last one prints how many there were.
 *
 * exec_chain N [MILLISECONDS [DONE]]
 */
#include <pthread.h>

#include "program.h"

/* Of CPU time: so much of it is seen on a busy machine too. */
static NOINLINE void spin_before_exec(int64_t ns)
{
	int64_t end = clock_ns(CLOCK_THREAD_CPUTIME_ID) + ns;

	while (clock_ns(CLOCK_THREAD_CPUTIME_ID) < end)
		;
}

static void *spin_beside(void *arg)
{
	spin_before_exec(60 * NS_PER_S);
	return arg;
}

/* exec by another thread than the leader: that thread takes the leader's id. */
static void *exec_from_thread(void *arg)
{
	char **argv = arg;

	execv("/proc/self/exe", argv);
	perror("execv");
	exit(1);
}

int main(int argc, char **argv)
{
	int n = argument(argc, argv, 1, 20), done = argument(argc, argv, 3, 0);
	double ms = argument(argc, argv, 2, 50);
	char number[16], next[16], length[16];
	char *again[] = { argv[0], number, length, next, NULL };
	pthread_t thread;

	bounded(60);
	if (done == 0)
		ready();
	if (done >= n) {
		printf("execs %d\n", done);
		return 0;
	}
	snprintf(number, sizeof(number), "%d", n);
	snprintf(length, sizeof(length), "%g", ms);
	snprintf(next, sizeof(next), "%d", done + 1);
	if (done > n / 2 && pthread_create(&thread, NULL, spin_beside, NULL) != 0)
		return 2;
	spin_before_exec(ms * 1000000);
	if (done % 3 == 2) {
		if (pthread_create(&thread, NULL, exec_from_thread, again) != 0)
			return 2;
		pthread_join(thread, NULL);
	}
	execv("/proc/self/exe", again);
	perror("execv");
	return 1;
}
