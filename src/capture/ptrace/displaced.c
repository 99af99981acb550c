/* SPDX-License-Identifier: Apache-2.0 */
/* Places the holding thread on the CPU of another thread, and finds out whether it displaced that thread. */
#include "capture/ptrace/displaced.h"

#include "os/clock.h"
#include "os/cpu.h"

#define AT_ONCE_NS 5000 /* a thread on its way into a sleep sleeps within this time, too */
#define OVERDUE_PERIODS 40      /* of CPU time without a sample */
#define OVERDUE_PERIODS_FIRST 4 /* ... of a thread that has none yet */
#define CALL_NS 25000   /* a system call that sends to another thread takes so long, with the other's wake-up */

void sf_displacement_aim(struct sf_displacement *displacement, const struct sf_task *self, struct sf_thread *thread, uint64_t until_ns)
{
	const int cpu = displacement->is_missing ? -1 : sf_task_cpu(&thread->task);
	struct sf_task_run run;

	displacement->is_aimed = false;
	if (cpu < 0)
		return;
	sf_cpu_move(cpu);
	if (!sf_task_run(self, &run))
		return;
	displacement->is_aimed = true;
	displacement->tid = thread->task.tid;
	displacement->wait_ns = run.wait_ns;
	displacement->until_ns = until_ns;
}

bool sf_displacement_woke(struct sf_displacement *displacement, struct sf_task *self)
{
	struct sf_task_run run;

	if (!displacement->is_aimed)
		return false;
	displacement->is_aimed = false;
	if (sf_now_ns() < displacement->until_ns || !sf_task_run(self, &run))
		return false;
	displacement->waited_ns = run.wait_ns - displacement->wait_ns;
	displacement->turn_ns = sf_task_turn_ns(self);
	displacement->is_missing = !displacement->turn_ns;
	return displacement->turn_ns;
}

bool sf_displacement_is_of(const struct sf_displacement *displacement, struct sf_thread *thread)
{
	return sf_task_turn_ns(&thread->task) == displacement->turn_ns;
}

enum sf_displaced_place sf_displacement_place(const struct sf_displacement *displacement, const struct sf_thread *thread,
					      bool machine_is_busy)
{
	if (displacement->waited_ns <= AT_ONCE_NS)
		return SF_DISPLACED_ANYWHERE;
	if (!sf_thread_awake(thread))
		return SF_DISPLACED_NOWHERE;
	return displacement->waited_ns <= CALL_NS || !machine_is_busy ? SF_DISPLACED_IN_CALL : SF_DISPLACED_NOWHERE;
}

bool sf_displacement_is_overdue(const struct sf_thread *thread, uint64_t period_ns)
{
	const uint64_t most_ns = (thread->ran ? OVERDUE_PERIODS : OVERDUE_PERIODS_FIRST) * period_ns;
	const uint64_t sampled_ns = thread->run.cpu_ns - thread->first_cpu_ns - thread->account.cpu_ns;

	return thread->account.cpu_ns >= (thread->use.is_much || sampled_ns > most_ns ? most_ns : sampled_ns);
}
