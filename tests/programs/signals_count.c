/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Signals that arrive while a thread is held: none lost, none doubled, order kept. Numbered realtime
 * signals come from three sides at once: a child process (to the process), a sibling thread (to
 * one thread), and the thread's own timer. Realtime signals are queued in order, so each
 * handler must see exactly the next number. Some of the time the thread spins, some it sleeps.
 *
 * signals_count [SECONDS]
 */
#include <pthread.h>
#include <sys/wait.h>

#include "program.h"

/* Written by handlers in the main thread only (the other blocks these signals). */
struct source {
	const char *name;
	volatile sig_atomic_t next, lost, doubled;
};
static struct source from_child = { .name = "child" }, from_sibling = { .name = "sibling" };
static volatile sig_atomic_t foreign;
static volatile bool sibling_done;
static pthread_t main_thread;
static double seconds;

static void count(struct source *source, int number)
{
	if (number > source->next)
		source->lost += number - source->next;
	else if (number < source->next)
		source->doubled++;
	if (number >= source->next)
		source->next = number + 1;
}

static void on_signal(int signal, siginfo_t *info, void *context)
{
	(void)context;
	if (info->si_code != SI_QUEUE)
		foreign++;
	else
		count(signal == SIGRTMIN ? &from_child : &from_sibling, info->si_value.sival_int);
}

static void on_other(int signal)
{
	(void)signal;
	foreign++;
}

/* The queue is bounded: wait while it is full. */
static bool full(int error)
{
	if (error != EAGAIN)
		return false;
	sleep_ns(1000000);
	return true;
}

static int send_from_child(pid_t to)
{
	int64_t end = now_ns() + seconds * NS_PER_S;
	unsigned seed = 1;
	int number = 0;

	while (now_ns() < end) {
		union sigval value = { .sival_int = number };

		if (sigqueue(to, SIGRTMIN, value) == 0)
			number++;
		else if (!full(errno))
			return -1;
		if (rand_r(&seed) % 4 == 0)
			sleep_ns(rand_r(&seed) % 200000);
	}
	return number;
}

static void *send_from_sibling(void *arg)
{
	int64_t end = now_ns() + seconds * NS_PER_S;
	unsigned seed = 2;
	int *sent = arg;

	while (now_ns() < end) {
		union sigval value = { .sival_int = *sent };
		int error = pthread_sigqueue(main_thread, SIGRTMIN + 1, value);

		if (error == 0)
			(*sent)++;
		else if (!full(error))
			break;
		if (rand_r(&seed) % 4 == 0)
			sleep_ns(rand_r(&seed) % 200000);
	}
	sibling_done = true;
	return NULL;
}

static bool judge(const struct source *source, int sent)
{
	bool good = sent > 0 && source->next == sent && source->lost == 0 && source->doubled == 0;

	printf("%s: sent %d received up to %d lost %d doubled or out of order %d: %s\n", source->name, sent,
	       (int)source->next, (int)source->lost, (int)source->doubled, good ? "good" : "BAD");
	return good;
}

int main(int argc, char **argv)
{
	struct sigaction action = { .sa_sigaction = on_signal, .sa_flags = SA_SIGINFO | SA_RESTART };
	struct sigaction other = { .sa_handler = on_other };
	int sent_by_child = 0, sent_by_sibling = 0, pipe_ends[2];
	sigset_t ours, before;
	pthread_t sibling;
	bool good;
	pid_t child;

	seconds = argument(argc, argv, 1, 3);
	bounded(60 + 10 * seconds);
	main_thread = pthread_self();
	/* While one handler runs the other waits, so that the counts need no atomics. */
	sigemptyset(&ours);
	sigaddset(&ours, SIGRTMIN);
	sigaddset(&ours, SIGRTMIN + 1);
	action.sa_mask = ours;
	sigaction(SIGRTMIN, &action, NULL);
	sigaction(SIGRTMIN + 1, &action, NULL);
	/* Nobody sends these: a profiler that does shows here. */
	for (int i = 0; i < 4; i++)
		sigaction((int[]){ SIGTRAP, SIGPROF, SIGUSR1, SIGURG }[i], &other, NULL);

	if (pipe(pipe_ends) != 0)
		return 2;
	sigprocmask(SIG_BLOCK, &ours, &before);
	child = fork();
	if (child == 0) {
		int number = send_from_child(getppid());

		_exit(write(pipe_ends[1], &number, sizeof(number)) != sizeof(number));
	}
	if (pthread_create(&sibling, NULL, send_from_sibling, &sent_by_sibling) != 0)
		return 2;
	sigprocmask(SIG_SETMASK, &before, NULL);
	ready();

	for (unsigned turn = 0; !sibling_done || waitpid(child, NULL, WNOHANG) == 0; turn++) {
		int64_t end = now_ns() + 20000000;

		if (turn % 2 == 0) {
			while (now_ns() < end)
				;
		} else {
			sleep_ns(20000000);
		}
	}
	pthread_join(sibling, NULL);
	if (read(pipe_ends[0], &sent_by_child, sizeof(sent_by_child)) != sizeof(sent_by_child))
		return 2;
	sleep_ns(50000000); /* pending signals are delivered on the way out of any call */
	good = judge(&from_child, sent_by_child);
	good = judge(&from_sibling, sent_by_sibling) && good;
	printf("signals that nobody of ours sent: %d\n", (int)foreign);
	return good && foreign == 0 ? 0 : 1;
}
