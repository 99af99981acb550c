/* SPDX-License-Identifier: Apache-2.0 */
/* CPU affinity of the sampler: who may migrate it, and its return to the CPUs that the program allows. */
#include "agent/sampler/cpu_affinity.h"

#include "frozen/raw.h"

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
	atomic_store(&wake_up->brought_to, 0);
}

void sf_cpu_affinity_end(struct sf_cpu_affinity *affinity)
{
	atomic_store(&affinity->wake_up->sleeper, 0);
}

/* If the affinity is not the CPU that a waking thread set, the program has set it: that is kept. */
static void leave(struct sf_cpu_affinity *affinity)
{
	const uint32_t to = atomic_load(&affinity->wake_up->brought_to);
	cpu_set_t there, now;

	if (!to)
		return;
	CPU_ZERO(&there);
	CPU_SET((size_t)to - 1, &there);
	get(&now);
	if (!CPU_EQUAL(&now, &there))
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
