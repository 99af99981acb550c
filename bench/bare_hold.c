/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The floor for a hold by ptrace: the bare round trip INTERRUPT, wait, GETREGSET, 2 KiB of stack, CONT of a child
 * that spins, with nothing around it. Prints median and 99th percentile in us.
 *
 * bare_hold same|other [ROUNDS]     on which CPU the tracer sits
 */
#include <elf.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static void sit_on(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	sched_setaffinity(0, sizeof(set), &set);
}

static int compare(const void *a, const void *b)
{
	double left = *(const double *)a, right = *(const double *)b;

	return (left > right) - (left < right);
}

static double round_trip(pid_t child)
{
	struct user_regs_struct regs;
	struct iovec iov = { &regs, sizeof(regs) };
	static char stack[2048];
	struct iovec local = { stack, sizeof(stack) }, remote = { NULL, sizeof(stack) };
	uint64_t start_ns = now_ns();

	ptrace(PTRACE_INTERRUPT, child, NULL, NULL);
	waitpid(child, NULL, __WALL);
	ptrace(PTRACE_GETREGSET, child, (void *)NT_PRSTATUS, &iov);
#if defined(__x86_64__)
	remote.iov_base = (void *)regs.rsp;
#else
	remote.iov_base = (void *)regs.sp;
#endif
	process_vm_readv(child, &local, 1, &remote, 1, 0);
	ptrace(PTRACE_CONT, child, NULL, NULL);
	return (double)(now_ns() - start_ns) / 1e3;
}

int main(int argc, char **argv)
{
	int n = argc > 2 ? atoi(argv[2]) : 3000;
	double *times = calloc((size_t)n, sizeof(*times));
	pid_t child = fork();

	if (child == 0) {
		sit_on(0);
		for (;;)
			__asm__ volatile("");
	}
	sit_on(argc > 1 && strcmp(argv[1], "other") == 0 ? 1 : 0);
	if (!times || ptrace(PTRACE_SEIZE, child, NULL, NULL) != 0) {
		perror("bare_hold: PTRACE_SEIZE");
		kill(child, SIGKILL);
		return 1;
	}
	for (int i = 0; i < n; i++) {
		times[i] = round_trip(child);
		usleep(500);
	}
	kill(child, SIGKILL);
	waitpid(child, NULL, __WALL);
	qsort(times, (size_t)n, sizeof(*times), compare);
	printf("median %.1f  p99 %.1f\n", times[n / 2], times[n * 99 / 100]);
	return 0;
}
