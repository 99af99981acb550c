/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The wake-up of the agent's threads: a futex word, and the migration of the sleeper to the
 * waking thread's CPU. Signal-safe; a waking thread never waits.
 */
#include "frozen/signal/wake_up.h"
#include "frozen/raw.h"

#include "frozen/frozen.h"

#define MAX_CPUS 1024
#define BITS (8 * sizeof(unsigned long))

uint32_t sf_wake_up_count(const struct sf_wake_up *wake_up)
{
	return atomic_load_explicit(&wake_up->n_posts, memory_order_acquire);
}

/*
 * The sleeper stores `asleep` and then loads `n_posts`. The waking thread stores `n_posts` and then loads
 * `asleep`. Sequential consistency makes sure that at least one of them sees the other's store: the
 * waking thread sees the sleeper, or the sleeper sees the post.
 */
void sf_wake_up_wait(struct sf_wake_up *wake_up, uint32_t heard, uint64_t until_ns)
{
	uint64_t now_ns = sf_raw_now_ns();

	while (now_ns < until_ns) {
		atomic_store(&wake_up->asleep, SF_SLEEPER_ASLEEP);
		if (atomic_load(&wake_up->n_posts) != heard)
			break;
		sf_raw_futex_wait(&wake_up->n_posts, heard, until_ns - now_ns);
		if (atomic_load(&wake_up->n_posts) != heard)
			break;
		now_ns = sf_raw_now_ns();
	}
	atomic_store(&wake_up->asleep, SF_SLEEPER_AWAKE);
}

/*
 * Migrates the sleeper to the CPU of the calling thread; no system call if it was put there before.
 * sched_setaffinity(2) accepts a set with fewer CPUs than the kernel has.
 */
static void bring_along(struct sf_wake_up *wake_up)
{
	const int32_t sleeper = atomic_load_explicit(&wake_up->sleeper, memory_order_relaxed);
	unsigned long set[MAX_CPUS / BITS] = { 0 };
	uint32_t cpu;

	if (!sleeper || !sf_raw_cpu(&cpu) || cpu >= MAX_CPUS ||
	    cpu + 1 == atomic_load_explicit(&wake_up->brought_to, memory_order_relaxed))
		return;
	atomic_store(&wake_up->bringing, cpu + 1);
	set[cpu / BITS] = 1ul << cpu % BITS;
	if (sf_raw3(SYS_sched_setaffinity, sleeper, sizeof(set), set) == 0)
		atomic_store(&wake_up->brought_to, cpu + 1);
}

void sf_wake_up_post(struct sf_wake_up *wake_up)
{
	uint32_t state = SF_SLEEPER_ASLEEP;

	atomic_fetch_add(&wake_up->n_posts, 1);
	if (atomic_load(&wake_up->asleep) == SF_SLEEPER_AWAKE)
		return;
	if (atomic_compare_exchange_strong(&wake_up->asleep, &state, SF_SLEEPER_BEING_WOKEN))
		bring_along(wake_up);
	else if (state == SF_SLEEPER_AWAKE)
		return;
	sf_raw_futex_wake(&wake_up->n_posts, 1);
	state = SF_SLEEPER_BEING_WOKEN;
	atomic_compare_exchange_strong(&wake_up->asleep, &state, SF_SLEEPER_AWAKE);
}
