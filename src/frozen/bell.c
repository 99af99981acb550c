/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The wake-up of the agent's threads: a futex word, and the migration of the sleeper to the
 * ringing thread's CPU. Signal-safe; a ringing thread never waits.
 */
#include <stdbool.h>

#include "frozen/bell.h"
#include "frozen/raw.h"

#include "frozen/frozen.h"

#define MAX_CPUS 1024
#define BITS (8 * sizeof(unsigned long))

uint32_t sf_bell_rings(const struct sf_bell *bell)
{
	return atomic_load_explicit(&bell->rings, memory_order_acquire);
}

/*
 * The sleeper stores `asleep` and then loads `rings`. The ringing thread stores `rings` and then loads
 * `asleep`. Sequential consistency makes sure that at least one of them sees the other's store: the
 * ringing thread sees the sleeper, or the sleeper sees the ring.
 */
void sf_bell_wait(struct sf_bell *bell, uint32_t heard, uint64_t until_ns)
{
	uint64_t now_ns = sf_raw_now_ns();

	while (now_ns < until_ns) {
		atomic_store(&bell->asleep, 1);
		if (atomic_load(&bell->rings) != heard)
			break;
		sf_raw_futex_wait(&bell->rings, heard, until_ns - now_ns);
		if (atomic_load(&bell->rings) != heard)
			break;
		now_ns = sf_raw_now_ns();
	}
	atomic_store(&bell->asleep, 0);
}

/*
 * Migrates the sleeper to the CPU of the calling thread; no system call if it was put there before.
 * sched_setaffinity(2) accepts a set with fewer CPUs than the kernel has.
 */
static void bring_along(struct sf_bell *bell)
{
	const int32_t sleeper = atomic_load_explicit(&bell->sleeper, memory_order_relaxed);
	unsigned long set[MAX_CPUS / BITS] = { 0 };
	uint32_t cpu;

	if (!sleeper || !sf_raw_cpu(&cpu) || cpu >= MAX_CPUS ||
	    cpu + 1 == atomic_load_explicit(&bell->brought_to, memory_order_relaxed))
		return;
	atomic_store_explicit(&bell->brought_to, cpu + 1, memory_order_relaxed);
	set[cpu / BITS] = 1ul << cpu % BITS;
	sf_raw3(SYS_sched_setaffinity, sleeper, sizeof(set), set);
}

void sf_bell_ring(struct sf_bell *bell)
{
	atomic_fetch_add(&bell->rings, 1);
	if (!atomic_load(&bell->asleep) || !atomic_exchange(&bell->asleep, 0))
		return;
	bring_along(bell);
	sf_raw_futex_wake(&bell->rings, 1);
}
