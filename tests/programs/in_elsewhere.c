/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program that keeps to one CPU, and has a child by the number of clone(2) that makes a thread on another CPU. Says on which
 * CPUs the thread `sf-sampler` may run then: the child must not have moved it to its own.
 */
#include <pthread.h>
#include <sched.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "in_program.h"

static void *do_nothing(void *arg)
{
	return arg;
}

static void keep_to(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET((size_t)cpu, &set);
	sched_setaffinity(0, sizeof(set), &set);
}

static void make_child(int cpu)
{
	long child = syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, 0);
	pthread_t thread;

	if (child == 0) {
		keep_to(cpu);
		pthread_create(&thread, NULL, do_nothing, NULL);
		_exit(0);
	}
	waitpid((pid_t)child, NULL, 0);
}

int main(void)
{
	cpu_set_t all;
	int cpus[2], n = 0;
	char words[256];

	bounded(60);
	sched_getaffinity(0, sizeof(all), &all);
	for (int cpu = 0; cpu < CPU_SETSIZE && n < 2; cpu++) {
		if (CPU_ISSET((size_t)cpu, &all))
			cpus[n++] = cpu;
	}
	if (n < 2)
		return 77;
	keep_to(cpus[0]);
	burn_ns(NS_PER_S / 5);
	usleep(200000);
	make_child(cpus[1]);
	snprintf(words, sizeof(words), "grep -l sf-sampler /proc/%d/task/*/comm | sed s/comm$/status/ | xargs grep Cpus_allowed_list", (int)getpid());
	printf("elsewhere %d\n", cpus[1]);
	fflush(stdout);
	return system(words);
}
