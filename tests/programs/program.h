/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The parts that the test programs share. Each is bounded in time by bounded(), says "ready" on its standard
 * output when it is where the test wants it, and judges itself where it can: exit status 0 is
 * a pass.
 */
#ifndef SF_TESTS_PROGRAM_H
#define SF_TESTS_PROGRAM_H

#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#ifdef __clang__ /* it makes no clones, and does not know the word */
#define NOINLINE __attribute__((noinline))
#else
#define NOINLINE __attribute__((noinline, noclone))
#endif
/* Keeps a value, and whatever computed it, from being optimised away. */
#define KEEP(value) __asm__ volatile("" : : "g"(value) : "memory")
/* As the last statement of a function that must keep its frame: no tail call is made across it. */
#define NO_TAIL_CALL() __asm__ volatile("" : : : "memory")

#define NS_PER_S 1000000000ll

static inline int64_t clock_ns(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return now.tv_sec * NS_PER_S + now.tv_nsec;
}

static inline int64_t now_ns(void)
{
	return clock_ns(CLOCK_MONOTONIC);
}

static inline void sleep_ns(int64_t ns)
{
	struct timespec left = { ns / NS_PER_S, ns % NS_PER_S };

	while (nanosleep(&left, &left) != 0 && errno == EINTR)
		;
}

/* The program ends by SIGALRM after this long, whatever happens to the test that started it. */
static inline void bounded(unsigned seconds)
{
	alarm(seconds);
}

static inline void ready(void)
{
	printf("ready\n");
	fflush(stdout);
}

/*
 * Whether a load of so many seconds, begun then, goes on: until they are over and, however busy the machine is, the
 * process has had a CPU for a quarter of them. The share that is seen of it does not depend on other programs.
 */
static inline bool lasts(int64_t start_ns, double seconds)
{
	return now_ns() < start_ns + (int64_t)(seconds * NS_PER_S) ||
	       clock_ns(CLOCK_PROCESS_CPUTIME_ID) < (int64_t)(seconds * NS_PER_S / 4);
}

/* Whether a process that is to use so much CPU time goes on: a busy machine makes that longer, and no less of it. */
static inline bool works(double cpu_seconds)
{
	return clock_ns(CLOCK_PROCESS_CPUTIME_ID) < (int64_t)(cpu_seconds * NS_PER_S);
}

/* The kernel's count for this process, all its threads included: a profiler's accounts are compared with it. */
static inline void tell_cpu(void)
{
	struct rusage used;

	getrusage(RUSAGE_SELF, &used);
	printf("cpu_seconds %.6f\n", used.ru_utime.tv_sec + used.ru_stime.tv_sec +
					    (used.ru_utime.tv_usec + used.ru_stime.tv_usec) / 1e6);
}

/* What this thread of the process does, by a letter of proc_pid_stat(5); 0: it has ended. */
static inline char letter_of(int tid)
{
	char path[64], letter = 0;
	FILE *status;

	snprintf(path, sizeof(path), "/proc/self/task/%d/stat", tid);
	status = fopen(path, "r");
	if (!status)
		return 0;
	if (fscanf(status, "%*d (%*[^)]) %c", &letter) != 1)
		letter = 0;
	fclose(status);
	return letter;
}

/* Whether this thread of the process sleeps in a call that a signal would end. */
static inline bool is_asleep(int tid)
{
	const char state = letter_of(tid);

	if (!state)
		exit(2);
	return state == 'S';
}

/* argv[index] as a number, or `otherwise`. */
static inline double argument(int argc, char **argv, int index, double otherwise)
{
	return index < argc ? atof(argv[index]) : otherwise;
}

static inline bool argument_is(int argc, char **argv, int index, const char *word)
{
	return index < argc && strcmp(argv[index], word) == 0;
}

/* Stays here: asleep if `asleep`, else on the CPU. Only a signal ends it. */
static inline __attribute__((always_inline)) void stay(bool asleep)
{
	static volatile unsigned long turns;

	for (;;) {
		if (asleep)
			pause();
		else
			turns++;
	}
}

#endif
