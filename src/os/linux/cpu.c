/* SPDX-License-Identifier: Apache-2.0 */
/* Places the calling thread on a CPU, and before other threads. */
#include "os/cpu.h"

#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

void sf_cpu_move(int cpu)
{
	static _Thread_local int present = -1;
	static _Thread_local cpu_set_t before;
	cpu_set_t set;

	if (cpu == present)
		return;
	if (present < 0)
		sched_getaffinity(0, sizeof(before), &before);
	present = cpu;
	if (cpu < 0) {
		sched_setaffinity(0, sizeof(before), &before);
		return;
	}
	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	sched_setaffinity(0, sizeof(set), &set);
}

/* The kernel would end the process with SIGXCPU (getrlimit(2)). */
static bool has_limit(void)
{
	struct rlimit limit;

	return getrlimit(RLIMIT_RTTIME, &limit) != 0 || limit.rlim_cur != RLIM_INFINITY;
}

static bool prefer_by_class(int flag)
{
	const struct sched_param lowest = { .sched_priority = sched_get_priority_min(SCHED_FIFO) };

	return !has_limit() && sched_setscheduler(0, SCHED_FIFO | flag, &lowest) == 0;
}

/*
 * Two means. A nice value below that of everyone else (root or CAP_SYS_NICE). And a short slice,
 * which gives an early deadline at each wake-up and needs no right: since Linux 6.12 sched_runtime
 * of an ordinary thread asks for one (kernel: Documentation/scheduler/sched-eevdf.rst); older
 * kernels ignore it.
 */
static void prefer_as_ordinary(void)
{
	struct {
		uint32_t size, policy;
		uint64_t flags;
		int32_t nice;
		uint32_t priority;
		uint64_t runtime, deadline, period;
	} attr = { .size = sizeof(attr), .policy = SCHED_OTHER };

	attr.nice = -20;
	attr.runtime = 100000;
	if (syscall(SYS_sched_setattr, 0, &attr, 0) != 0) {
		attr.nice = 0;
		syscall(SYS_sched_setattr, 0, &attr, 0);
	}
}

/* A caller that is of a real-time class stays as its user wants it. */
void sf_cpu_prefer(void)
{
	const int class = sched_getscheduler(0);

	prctl(PR_SET_TIMERSLACK, 1); /* ns; else its timers wait for others for 50 us */
	if ((class == SCHED_OTHER || class == SCHED_BATCH || class == SCHED_IDLE) && !prefer_by_class(SCHED_RESET_ON_FORK))
		prefer_as_ordinary();
}

/* Without the flag, which not every user may take back. */
bool sf_cpu_may_prefer(bool *has_limit_ret)
{
	const struct sched_param none = { 0 };

	*has_limit_ret = has_limit();
	return prefer_by_class(0) && sched_setscheduler(0, SCHED_OTHER, &none) == 0;
}
