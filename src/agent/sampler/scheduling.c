/* SPDX-License-Identifier: Apache-2.0 */
/* The sampler's scheduling: its priority, by that of the program's threads, and its CPUs. No lock, no allocation. */
#include "agent/sampler/scheduling.h"

#include "frozen/raw.h"

/* --- priority --- */

#define SCHED_DEADLINE_POLICY 6
#define HIGHEST 99       /* of SCHED_FIFO; a deadline goes before it */
#define N_LOWER 200      /* ten seconds, at 20 rounds a second */

/* sched_setattr(2) */
struct attr {
	uint32_t size, policy;
	uint64_t flags;
	int32_t nice;
	uint32_t priority;
	uint64_t runtime, deadline, period;
};

static bool set(struct attr attr)
{
	attr.size = sizeof(attr);
	return sf_raw3(SYS_sched_setattr, 0, &attr, 0) == 0;
}

/*
 * Two means: a nice value below everyone else's (root or CAP_SYS_NICE), and a short slice, which gives an early
 * deadline and needs no right (since Linux 6.12; kernel: Documentation/scheduler/sched-eevdf.rst).
 */
static void be_ordinary(void)
{
	if (!set((struct attr){ .policy = SCHED_OTHER, .nice = -20, .runtime = 100000 }))
		set((struct attr){ .policy = SCHED_OTHER, .runtime = 100000 });
}

void sf_priority_init(struct sf_priority *priority)
{
	*priority = (struct sf_priority){ 0 };
	be_ordinary();
}

void sf_priority_see(struct sf_priority *priority, int32_t tid)
{
	struct attr attr = { 0 };
	uint32_t theirs = 0;

	if (sf_raw4(SYS_sched_getattr, tid, &attr, sizeof(attr), 0) != 0)
		return;
	if (attr.policy == SCHED_FIFO || attr.policy == SCHED_RR)
		theirs = attr.priority;
	else if (attr.policy == SCHED_DEADLINE_POLICY)
		theirs = HIGHEST;
	if (theirs > priority->highest)
		priority->highest = theirs;
}

/* Where that is refused it stays as it is, and is not tried again for the same priority. */
static void take(struct sf_priority *priority, uint32_t to)
{
	if (to)
		set((struct attr){ .policy = SCHED_FIFO, .priority = to });
	else
		be_ordinary();
	priority->own = to;
	priority->n_lower = 0;
}

void sf_priority_settle(struct sf_priority *priority)
{
	if (priority->highest > priority->own)
		take(priority, priority->highest);
	else if (priority->highest == priority->own)
		priority->n_lower = 0;
	else if (++priority->n_lower >= N_LOWER)
		take(priority, priority->highest);
	priority->highest = 0;
}

/* --- CPU affinity --- */

#define LATE_NS 20000000
#define AWAY_NS UINT64_C(10000000000)

static void get(cpu_set_t *ret)
{
	CPU_ZERO(ret);
	sf_raw3(SYS_sched_getaffinity, 0, sizeof(*ret), ret);
}

void sf_cpu_affinity_init(struct sf_cpu_affinity *affinity, struct sf_wake_up *wake_up)
{
	*affinity = (struct sf_cpu_affinity){ .wake_up = wake_up, .due_ns = UINT64_MAX };
	get(&affinity->allowed);
	atomic_store(&wake_up->sleeper, 0);
	atomic_store(&wake_up->bringing, 0);
	atomic_store(&wake_up->brought_to, 0);
}

void sf_cpu_affinity_end(struct sf_cpu_affinity *affinity)
{
	atomic_store(&affinity->wake_up->sleeper, 0);
}

/* `number`: a CPU, plus one; 0: none. */
static bool is_only(const cpu_set_t *cpus, uint32_t number)
{
	return number && CPU_COUNT(cpus) == 1 && CPU_ISSET((size_t)number - 1, cpus);
}

/* If the affinity is not a CPU that a waking thread set, the program has set it: that is kept. */
static void leave(struct sf_cpu_affinity *affinity)
{
	const struct sf_wake_up *wake_up = affinity->wake_up;
	cpu_set_t now;

	get(&now);
	if (!is_only(&now, atomic_load(&wake_up->bringing)) && !is_only(&now, atomic_load(&wake_up->brought_to)))
		affinity->allowed = now;
	sf_raw3(SYS_sched_setaffinity, 0, sizeof(affinity->allowed), &affinity->allowed);
}

/*
 * A thread that wakes this one at the same moment may still migrate it. That is harmless: if this
 * thread is late on that CPU again, the next call notices.
 */
void sf_cpu_affinity_move(struct sf_cpu_affinity *affinity, uint64_t now_ns, uint64_t due_ns)
{
	struct sf_wake_up *wake_up = affinity->wake_up;

	affinity->due_ns = due_ns;
	if (affinity->late) {
		affinity->late = false;
		atomic_store(&wake_up->sleeper, 0);
		leave(affinity);
		atomic_store(&wake_up->brought_to, 0);
	} else if (now_ns >= affinity->away_ns && !atomic_load(&wake_up->sleeper)) {
		atomic_store(&wake_up->sleeper, (int32_t)sf_raw0(SYS_gettid));
	}
}

void sf_cpu_affinity_woke(struct sf_cpu_affinity *affinity, uint64_t now_ns)
{
	if (!atomic_load(&affinity->wake_up->brought_to) || now_ns <= affinity->due_ns + LATE_NS)
		return;
	affinity->late = true;
	affinity->away_ns = now_ns + AWAY_NS;
}
