/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Job control: a parent stops and continues its child over and over, as a shell does, and checks what the
 * kernel promises: the stop is reported, a stopped child does not run, the continue is reported, a
 * continued child runs, and the child's SIGCONT handler ran once for each. A profiler that forgets the
 * group stop wakes the child or leaves it stopped.
 *
 * Prints "child PID" after "ready": that is the process to profile.
 *
 * job_control [SECONDS]
 */
#include <pthread.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "program.h"

struct shared {
	volatile unsigned long turns[2];
	volatile unsigned continued;
};
static struct shared *shared;

static void on_continue(int signal)
{
	(void)signal;
	shared->continued++;
}

static void *spin_second(void *arg)
{
	for (;;)
		shared->turns[1]++;
	return arg;
}

static void child_main(void)
{
	struct sigaction action = { .sa_handler = on_continue, .sa_flags = SA_RESTART };
	pthread_t second;
	sigset_t only;

	sigaction(SIGCONT, &action, NULL);
	sigemptyset(&only);
	sigaddset(&only, SIGCONT);
	sigprocmask(SIG_BLOCK, &only, NULL);
	if (pthread_create(&second, NULL, spin_second, NULL) != 0)
		_exit(2);
	sigprocmask(SIG_UNBLOCK, &only, NULL);
	for (;;)
		shared->turns[0]++;
}

static bool is(bool good, unsigned turn, const char *what)
{
	if (!good)
		printf("turn %u: %s\n", turn, what);
	return good;
}

/* One stop and one continue. */
static bool stop_and_continue(pid_t child, unsigned turn)
{
	unsigned long before, after;
	unsigned continued = shared->continued;
	int64_t patience;
	bool good;
	int status;

	kill(child, turn % 2 ? SIGSTOP : SIGTSTP);
	good = is(waitpid(child, &status, WUNTRACED) == child && WIFSTOPPED(status), turn,
		  "the stop was not reported");
	sleep_ns(2000000);
	before = shared->turns[0] + shared->turns[1];
	sleep_ns(20000000);
	after = shared->turns[0] + shared->turns[1];
	good = is(before == after, turn, "it ran while it was stopped") && good;
	kill(child, SIGCONT);
	good = is(waitpid(child, &status, WCONTINUED) == child && WIFCONTINUED(status), turn,
		  "the continue was not reported") && good;
	for (patience = now_ns() + 10 * NS_PER_S; now_ns() < patience; sleep_ns(1000000))
		if (shared->turns[0] + shared->turns[1] != after && shared->continued != continued)
			break;
	good = is(shared->turns[0] + shared->turns[1] != after, turn, "it did not run on") && good;
	return is(shared->continued == continued + 1, turn, "SIGCONT's handler did not run once") &&
	       good;
}

int main(int argc, char **argv)
{
	double seconds = argument(argc, argv, 1, 3);
	int64_t end = now_ns() + seconds * NS_PER_S;
	unsigned turns = 0, bad = 0;
	pid_t child;

	bounded(60 + 10 * seconds);
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	child = fork();
	if (child == 0) {
		/* A group of its own: a SIGTSTP in an orphaned group would be ignored. */
		setpgid(0, 0);
		bounded(60 + 10 * seconds);
		child_main();
	}
	setpgid(child, child);
	sleep_ns(50000000);
	ready();
	printf("child %d\n", child);
	fflush(stdout);
	for (; now_ns() < end && bad < 5; turns++)
		bad += !stop_and_continue(child, turns);
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	printf("turns %u bad %u\n", turns, bad);
	return bad || turns == 0 ? 1 : 0;
}
