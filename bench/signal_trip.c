/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The floor for a hold by signal: the bare round trip of a hand-shake by futexes, with no walk and nothing around it. A
 * thread spins; the sampler signals it, the handler says that it stands and waits, the sampler lets it go. Prints how
 * long the thread stood and how long it took in all, median and 99th percentile in us.
 *
 * signal_trip same|other|free [BUSY [ROUNDS]]     where the sampler sits; BUSY other threads spin, too
 */
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { IDLE, HELD, RELEASED };

static uint32_t word;
static uint64_t entered_ns, left_ns;
static volatile bool done;
static int target_tid, target_cpu = -1;

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static void wait_while(uint32_t value)
{
	while (__atomic_load_n(&word, __ATOMIC_ACQUIRE) == value)
		syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, value, NULL, NULL, 0);
}

static void set(uint32_t value)
{
	__atomic_store_n(&word, value, __ATOMIC_RELEASE);
	syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

static void on_signal(int signal)
{
	(void)signal;
	entered_ns = now_ns();
	set(HELD);
	wait_while(HELD);
	left_ns = now_ns();
	set(IDLE);
}

static void sit_on(int cpu)
{
	cpu_set_t mask;

	CPU_ZERO(&mask);
	CPU_SET(cpu, &mask);
	sched_setaffinity(0, sizeof(mask), &mask);
}

static void *target(void *arg)
{
	if (target_cpu >= 0)
		sit_on(target_cpu);
	__atomic_store_n(&target_tid, (int)syscall(SYS_gettid), __ATOMIC_RELEASE);
	while (!done)
		__asm__ volatile("");
	return arg;
}

static void *busy(void *arg)
{
	while (!done)
		__asm__ volatile("");
	return arg;
}

static int compare(const void *a, const void *b)
{
	double left = *(const double *)a, right = *(const double *)b;

	return (left > right) - (left < right);
}

static void print(const char *what, double *times, int n)
{
	qsort(times, (size_t)n, sizeof(*times), compare);
	printf("%s %.1f p99 %.1f  ", what, times[n / 2], times[n * 99 / 100]);
}

/* Rounds of one hand-shake; a millisecond between two. */
static void measure(double *holds, double *trips, int n)
{
	for (int i = 0; i < n; i++) {
		uint64_t start = now_ns();

		syscall(SYS_tgkill, getpid(), target_tid, SIGPROF);
		wait_while(IDLE);
		set(RELEASED);
		wait_while(RELEASED);
		trips[i] = (double)(now_ns() - start) / 1e3;
		holds[i] = (double)(left_ns - entered_ns) / 1e3;
		usleep(1000);
	}
}

int main(int argc, char **argv)
{
	const char *where = argc > 1 ? argv[1] : "free";
	int n_busy = argc > 2 ? atoi(argv[2]) : 0, n = argc > 3 ? atoi(argv[3]) : 2000;
	double *holds = calloc((size_t)n, sizeof(*holds)), *trips = calloc((size_t)n, sizeof(*trips));
	struct sigaction action = { .sa_handler = on_signal, .sa_flags = SA_RESTART };
	pthread_t thread;

	if (!holds || !trips || sigaction(SIGPROF, &action, NULL) != 0)
		return 1;
	target_cpu = strcmp(where, "free") == 0 ? -1 : 0;
	for (int i = 0; i < n_busy; i++)
		pthread_create(&(pthread_t){ 0 }, NULL, busy, NULL);
	pthread_create(&thread, NULL, target, NULL);
	if (target_cpu == 0)
		sit_on(strcmp(where, "other") == 0 ? 1 : 0);
	while (!__atomic_load_n(&target_tid, __ATOMIC_ACQUIRE))
		usleep(1000);
	measure(holds, trips, n);
	done = true;
	pthread_join(thread, NULL);
	print("hold", holds, n);
	print("trip", trips, n);
	printf("\n");
	return 0;
}
