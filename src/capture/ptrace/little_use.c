/* SPDX-License-Identifier: Apache-2.0 */
/* What each thread has used and lacks, for sf_use_shares, and how its account takes what is shared out. */
#include "capture/ptrace/little_use.h"
#include "capture/ptrace/unseen.h"

void sf_little_use_looked(struct sf_thread *thread, uint64_t now_ns)
{
	thread->n_looks++;
	thread->looked_for_ns += now_ns - thread->seen_ns;
}

static struct sf_cpu_use use_of(const struct sf_thread *thread)
{
	return (struct sf_cpu_use){
		.used_ns = (double)(thread->run.cpu_ns - thread->first_cpu_ns),
		.unsampled_ns = thread->ran ? 0 : (double)thread->account.cpu_ns,
		.every_ns = thread->n_looks ? (double)(thread->looked_for_ns / thread->n_looks) : 0,
		.n_samples = thread->n_ran,
	};
}

static bool takes_part(const struct sf_thread *thread)
{
	return thread->watched && !thread->is_32_bit && !thread->is_refused && !thread->only_awake;
}

bool sf_little_use_is(const struct sf_thread *thread)
{
	const struct sf_cpu_use use = use_of(thread);

	return takes_part(thread) && sf_cpu_use_is_little(&use);
}

/* The threads of one process. */
struct threads {
	const struct sf_watch *watch;
	int32_t pid;
};

static bool get(const void *arg, size_t i, struct sf_cpu_use *ret)
{
	const struct threads *threads = arg;
	const struct sf_thread *thread = threads->watch->threads.items[i];

	if (thread->task.pid != threads->pid || !takes_part(thread))
		return false;
	*ret = use_of(thread);
	return true;
}

/* The elapsed time goes with the CPU time. */
void sf_little_use_end(const struct sf_watch *watch, struct sf_watched_process *process, struct sf_thread *thread, uint64_t now_ns)
{
	const struct threads threads = { watch, process->pid };
	const struct sf_cpu_use use = use_of(thread);
	int64_t ns;

	if (!sf_little_use_is(thread))
		return;
	sf_use_shares_find(&process->little, watch->threads.n, get, &threads, now_ns);
	ns = sf_use_shares_move(&process->little, &use);
	thread->account.cpu_ns += (uint64_t)ns;
	thread->account.awake_ns += ns;
}

void sf_little_use_lose(struct sf_watch *watch, const struct sf_use_shares *shares)
{
	const uint64_t ns = (uint64_t)shares->pool_ns;
	const struct sf_weight weight = { .cpu_ns = ns, .wall_ns = ns, .ticks = sf_unseen_ticks(watch, ns) };

	if (!ns)
		return;
	watch->lost_cpu_ns += ns;
	sf_relay_loss(watch->relay, NULL, watch->over ? SF_LOSS_REST : SF_LOSS_GONE, &weight);
}
