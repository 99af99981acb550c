/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/near.h"

#include <stdbool.h>

#include "frozen/inside.h"
#include "frozen/raw.h"

/*
 * Ticks in a row on one CPU, before it is the one. Threads that keep two CPUs busy come to that
 * once in 65,000 ticks.
 */
#define NEAR_RUN 16
#define LATE_NS 20000000             /* not let in */
#define AWAY_NS UINT64_C(10000000000)

static void get(cpu_set_t *ret)
{
	CPU_ZERO(ret);
	sf_raw3(SYS_sched_getaffinity, 0, sizeof(*ret), ret);
}

void sf_near_init(struct sf_near *near)
{
	*near = (struct sf_near){ .cpu = -1, .due_ns = UINT64_MAX };
	get(&near->allowed);
	near->set = near->allowed;
}

static void set(struct sf_near *near, const cpu_set_t *cpus)
{
	sf_raw3(SYS_sched_setaffinity, 0, sizeof(*cpus), cpus);
	get(&near->set);
}

static void go(struct sf_near *near, int cpu)
{
	cpu_set_t one;

	CPU_ZERO(&one);
	CPU_SET((size_t)cpu, &one);
	set(near, &one);
}

static int wanted(const struct sf_near *near, uint64_t now_ns)
{
	const uint64_t met = atomic_load_explicit(&sf_inside.met_on, memory_order_relaxed);

	return now_ns >= near->away_ns && sf_met_run(met) >= NEAR_RUN ? (int)sf_met_cpu(met) : -1;
}

/* Where nothing changes it costs no system call, also if it could not be put there. */
void sf_near_move(struct sf_near *near, uint64_t now_ns, uint64_t due_ns)
{
	const int cpu = wanted(near, now_ns);
	cpu_set_t now;

	near->due_ns = due_ns;
	if (cpu == near->cpu)
		return;
	near->cpu = cpu;
	get(&now);
	if (!CPU_EQUAL(&now, &near->set))
		near->allowed = now; /* somebody else has set it */
	if (cpu >= 0 && CPU_ISSET((size_t)cpu, &near->allowed))
		go(near, cpu);
	else
		set(near, &near->allowed);
}

void sf_near_woke(struct sf_near *near, uint64_t now_ns)
{
	if (near->cpu >= 0 && now_ns > near->due_ns + LATE_NS)
		near->away_ns = now_ns + AWAY_NS;
}
