/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CPU affinity of the agent's threads: moves the calling thread to the CPU on which the program's
 * threads are sampled. Only the agent's own threads call this.
 */
#include "agent/host/cpu_affinity.h"

#include <stdbool.h>

#include "frozen/signal/handler.h"
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

void sf_cpu_affinity_init(struct sf_cpu_affinity *affinity, struct sf_wake_up *wake_up)
{
	*affinity = (struct sf_cpu_affinity){ .wake_up = wake_up, .cpu = -1, .due_ns = UINT64_MAX };
	get(&affinity->allowed);
	affinity->set = affinity->allowed;
	if (wake_up) {
		atomic_store(&wake_up->sleeper, 0);
		atomic_store(&wake_up->brought_to, 0);
	}
}

void sf_cpu_affinity_end(struct sf_cpu_affinity *affinity)
{
	if (affinity->wake_up)
		atomic_store(&affinity->wake_up->sleeper, 0);
}

static void set(struct sf_cpu_affinity *affinity, const cpu_set_t *cpus)
{
	sf_raw3(SYS_sched_setaffinity, 0, sizeof(*cpus), cpus);
	get(&affinity->set);
}

static cpu_set_t only(uint32_t cpu)
{
	cpu_set_t one;

	CPU_ZERO(&one);
	CPU_SET((size_t)cpu, &one);
	return one;
}

/* If the affinity is not the one that we set, the program has set it: keeps it as `allowed`. */
static void take_over(struct sf_cpu_affinity *affinity, const cpu_set_t *ours)
{
	cpu_set_t now;

	get(&now);
	if (!CPU_EQUAL(&now, ours))
		affinity->allowed = now;
}

/* --- brought along --- */

static void leave(struct sf_cpu_affinity *affinity)
{
	const uint32_t to = atomic_load(&affinity->wake_up->brought_to);
	cpu_set_t there;

	if (!to)
		return;
	there = only(to - 1);
	take_over(affinity, &there);
	set(affinity, &affinity->allowed);
}

/*
 * A thread that wakes this one at the same moment may still migrate it. That is harmless: if this
 * thread is late on that CPU again, the next call notices.
 */
static void be_brought(struct sf_cpu_affinity *affinity, uint64_t now_ns)
{
	struct sf_wake_up *wake_up = affinity->wake_up;

	if (affinity->late) {
		affinity->late = false;
		atomic_store(&wake_up->sleeper, 0);
		leave(affinity);
		atomic_store(&wake_up->brought_to, 0);
	} else if (now_ns >= affinity->away_ns && !atomic_load(&wake_up->sleeper)) {
		atomic_store(&wake_up->sleeper, (int32_t)sf_raw0(SYS_gettid));
	}
}

/* --- by itself --- */

static int wanted(const struct sf_cpu_affinity *affinity, uint64_t now_ns)
{
	const uint64_t met = atomic_load_explicit(&sf_handler.met_on, memory_order_relaxed);

	return now_ns >= affinity->away_ns && sf_met_run(met) >= NEAR_RUN ? (int)sf_met_cpu(met) : -1;
}

/* Where nothing changes it costs no system call, also if it could not be put there. */
static void go(struct sf_cpu_affinity *affinity, uint64_t now_ns)
{
	const int cpu = wanted(affinity, now_ns);
	cpu_set_t there;

	if (cpu == affinity->cpu)
		return;
	affinity->cpu = cpu;
	take_over(affinity, &affinity->set);
	if (cpu >= 0 && CPU_ISSET((size_t)cpu, &affinity->allowed)) {
		there = only((uint32_t)cpu);
		set(affinity, &there);
	} else {
		set(affinity, &affinity->allowed);
	}
}

void sf_cpu_affinity_move(struct sf_cpu_affinity *affinity, uint64_t now_ns, uint64_t due_ns)
{
	affinity->due_ns = due_ns;
	if (affinity->wake_up)
		be_brought(affinity, now_ns);
	else
		go(affinity, now_ns);
}

void sf_cpu_affinity_woke(struct sf_cpu_affinity *affinity, uint64_t now_ns)
{
	const bool is_put = affinity->wake_up ? atomic_load(&affinity->wake_up->brought_to) != 0 : affinity->cpu >= 0;

	if (!is_put || now_ns <= affinity->due_ns + LATE_NS)
		return;
	affinity->late = true;
	affinity->away_ns = now_ns + AWAY_NS;
}
