/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program that interrupts itself: a signal of its own, without SA_RESTART, ends a read and a nanosleep with
 * EINTR. It is sent only when the thread sleeps (its count of switches and its state say so), so that every
 * single one has its effect. With a profiler inside, one ambiguity is left (src/frozen/signal/context_x86_64.c): a sleep, which
 * SA_RESTART does not restart, may go on when a tick comes in the very moment in which the program's
 * handler returns: one in ten is allowed for. Reads, which our signal restarts by SA_RESTART, are told apart: of 1,300 at
 * 4 kHz one was lost, and one in a hundred is allowed for.
 *
 * in_interrupted [SECONDS [prof]]     prof: by SIGPROF, which may be the profiler's, too: its handler is called by the profiler's,
 *                                     which then knows whose interruption it is, and none is allowed to be lost
 */
#include <pthread.h>
#include <sys/syscall.h>

#include "in_program.h"

#define LEAST_SENT 20u   /* also where the machine is so busy that this takes longer than SECONDS */

static int64_t end_ns;
static int ends[2];
static volatile unsigned ended, handled;   /* by the sleeper */
static volatile bool in_read, in_call;
static volatile int sleeper_tid;
static unsigned short_sleeps, wrong;
static volatile bool stop;

static void on_wake(int signal)
{
	(void)signal;
	handled++;
}

static void burn_a_little(unsigned *seed)
{
	burn_ns(rand_r(seed) % 400000);
}

/* Two kinds of sleep in turn; each must be ended by the signal, not by its end. */
static void *sleeper(void *arg)
{
	unsigned seed = 1;

	sleeper_tid = syscall(SYS_gettid);
	for (unsigned turn = 0; !stop; turn++) {
		struct timespec ten = { 10, 0 };
		char byte;

		burn_a_little(&seed);
		in_read = turn % 2;
		errno = 0;
		in_call = true;
		if (turn % 2 ? read(ends[0], &byte, 1) >= 0 : nanosleep(&ten, NULL) == 0)
			short_sleeps++;
		else if (errno != EINTR)
			wrong++;
		in_call = false;
		ended++;
	}
	return arg;
}

static char state_of(int tid, unsigned long *switches)
{
	char path[64], line[256], state = 0;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/self/task/%d/status", tid);
	file = fopen(path, "r");
	while (file && fgets(line, sizeof(line), file)) {
		sscanf(line, "State: %c", &state);
		sscanf(line, "voluntary_ctxt_switches: %lu", switches);
	}
	if (file)
		fclose(file);
	return state;
}

/*
 * Whether it is in the kernel by its own call. Before the call a tick may have the thread stand in the profiler's handler, asleep
 * as well, for as long as the profiler gets no CPU: a signal is handled there before the call begins, and interrupts nothing.
 */
static bool is_in_its_call(void)
{
	char path[64];
	FILE *file;
	int number = -1;

	snprintf(path, sizeof(path), "/proc/self/task/%d/syscall", sleeper_tid);
	file = fopen(path, "r");
	if (file && fscanf(file, "%d", &number) != 1)
		number = -1; /* it runs */
	if (file)
		fclose(file);
	return number == SYS_read || number == SYS_nanosleep || number == SYS_clock_nanosleep;
}

/* Asleep in its call, and not only for a moment. */
static bool sleeps(void)
{
	unsigned long before = 0, after = 1;

	if (!in_call || state_of(sleeper_tid, &before) != 'S')
		return false;
	sleep_ns(2000000);
	return in_call && is_in_its_call() && state_of(sleeper_tid, &after) == 'S' && before == after;
}

int main(int argc, char **argv)
{
	double seconds = argument(argc, argv, 1, 2);
	const bool prof = argument_is(argc, argv, 2, "prof");
	const int own_signal = prof ? SIGPROF : SIGRTMIN + 7;
	struct sigaction action = { .sa_handler = on_wake };
	unsigned sent = 0, lost_reads = 0, lost_sleeps = 0;
	pthread_t thread;

	bounded(60 + 10 * seconds);
	end_ns = now_ns() + seconds * NS_PER_S;
	if (pipe(ends) != 0 || sigaction(own_signal, &action, NULL) != 0 ||
	    pthread_create(&thread, NULL, sleeper, NULL) != 0)
		return 2;
	ready();
	while (now_ns() < end_ns || sent < LEAST_SENT) {
		unsigned before = ended;
		int64_t patience = now_ns() + 2 * NS_PER_S;

		if (!sleeper_tid || !sleeps())
			continue;
		sent++;
		pthread_kill(thread, own_signal);
		while (ended == before && now_ns() < patience)
			sleep_ns(50000);
		if (ended == before)
			*(in_read ? &lost_reads : &lost_sleeps) += 1;
	}
	printf("sent %u handled %u lost reads %u sleeps %u short %u wrong %u\n", sent, handled, lost_reads,
	       lost_sleeps, short_sleeps, wrong);
	return lost_reads > (prof ? 0 : 1 + sent / 100) || lost_sleeps > (prof ? 0 : 1 + sent / 10) || handled != sent || wrong ||
	       short_sleeps;
}
