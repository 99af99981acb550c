/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How the account of a watched thread begins and ends. At the end its rest goes to its last sample, or is a loss.
 */
#include <string.h>

#include "capture/ptrace/unsampled.h"
#include "capture/ptrace/watched.h"
#include "frozen/signal/ticks.h"

#define REST_TICKS 4                /* after a thread's last sample on a CPU, which that sample may stand for, too */

void sf_watch_begin_account(const struct sf_watch *watch, const struct sf_watched_process *process, struct sf_thread *thread)
{
	const uint64_t before_ns = process && thread->task.tid == process->pid ? process->cpu_ns : 0;

	if (sf_watch_knows_by_samples(watch, thread) || thread->first_cpu_ns <= before_ns)
		return;
	thread->account.cpu_ns += thread->first_cpu_ns - before_ns;
	thread->account.awake_ns += (int64_t)(thread->first_cpu_ns - before_ns);
	thread->first_cpu_ns = before_ns;
}

void sf_watch_begin_again(const struct sf_watch *watch, struct sf_watched_process *process)
{
	(void)sf_process_cpu(process->pid, &process->last_cpu_ns);
	process->cpu_ns = process->last_cpu_ns;
	process->threads_cpu_ns = 0;
	for (size_t i = 0; i < watch->threads.n; i++) {
		struct sf_thread *thread = watch->threads.items[i];

		if (thread->task.pid != process->pid)
			continue;
		sf_thread_begin_again(thread);
		process->cpu_ns -= thread->run.cpu_ns - thread->first_cpu_ns; /* it will be its threads' when this one ends */
	}
}

/*
 * Whether a thread's last sample on a CPU may stand for its CPU time since, too. Samples come at moments that do not
 * depend on what the thread does: those before a moment show as much of the time after it as those that follow. The
 * limit is the time for which the thread's samples stand already. Time of which there were samples that the cost limit
 * has passed over has no limit: the lot decides which samples are walked.
 */
static bool is_short_rest(const struct sf_watch *watch, const struct sf_thread *thread, const struct sf_weight *rest)
{
	const uint64_t counted_ns = thread->run.cpu_ns - thread->first_cpu_ns;

	if (!thread->ran || thread->is_32_bit)
		return false;
	return sf_little_use_is(thread) || rest->ticks <= REST_TICKS + sf_unseen_ticks(watch, thread->batch.passed_ns) ||
	       (!thread->account.beyond_ns && 2 * rest->cpu_ns <= counted_ns);
}

/* Why there is no further sample of a thread. */
static enum sf_loss cause_of_end(const struct sf_watch *watch)
{
	return watch->over ? SF_LOSS_REST : SF_LOSS_GONE;
}

/* Why the thread's time since its last sample has none. */
static enum sf_loss cause_of_rest(const struct sf_watch *watch, const struct sf_thread *thread)
{
	if (thread->is_32_bit)
		return SF_LOSS_NARROW;
	if (thread->account.beyond_ns)
		return SF_LOSS_KERNEL;
	return cause_of_end(watch);
}

void sf_watch_extend_sleep(struct sf_watch *watch, struct sf_thread *thread, uint64_t now_ns)
{
	const uint64_t rate_mhz = watch->options->blocked_rate_mhz;
	struct sf_weight weight;

	if (!rate_mhz || !sf_thread_is_sampled(thread) || !thread->sampled || sf_thread_awake(thread) ||
	    thread->account.asleep_ns <= 0)
		return;
	weight = sf_thread_take_asleep(thread, sf_period_ns(rate_mhz));
	sf_relay_again(watch->relay, thread, now_ns, &weight);
}

/* A recorded sleep without a record of its end lasts for as long as is known. */
static uint64_t end_of(const struct sf_watch *watch, const struct sf_sleep *sleep)
{
	return sleep->woken_ns ? sleep->woken_ns : watch->recorded_until_ns;
}

/* The rest of a recorded sleep that has a sample. */
static void end_recorded_sleep(struct sf_watch *watch, struct sf_thread *thread)
{
	const struct sf_sleep *sleep = &thread->sleep;
	const uint64_t end_ns = end_of(watch, sleep), given_ns = thread->sleeps.sampled_ns - sleep->before_ns;
	struct sf_weight weight;

	if (!thread->watched || !thread->sleeps.are_recorded || !sleep->has_sample || end_ns <= sleep->start_ns + given_ns)
		return;
	weight = sf_thread_take_sleep(thread, end_ns - sleep->start_ns - given_ns,
				      sf_period_ns(watch->options->blocked_rate_mhz));
	sf_relay_again(watch->relay, thread, end_ns, &weight);
}

/* A recorded sleep that goes on, and was too short for a sample as yet. */
static void put_off_sleep(const struct sf_watch *watch, struct sf_thread *thread)
{
	const struct sf_sleep *sleep = &thread->sleep;
	const uint64_t end_ns = end_of(watch, sleep);

	if (!thread->sleeps.are_recorded || !sleep->start_ns || sleep->has_sample || thread->exited_ns || end_ns <= sleep->start_ns)
		return;
	sf_thread_take_off_sleep(thread, end_ns - sleep->start_ns, end_ns);
	thread->sleeps.passed_ns += end_ns - sleep->start_ns;
}

/*
 * Where sleeps are recorded: those that were too short, or that the cost limit has passed over, since the last sample of one,
 * and those without records.
 */
static void give_sleeps(struct sf_watch *watch, struct sf_thread *thread, uint64_t now_ns)
{
	const bool is_unrecorded = thread->account.asleep_ns > 0 && !thread->is_refused &&
				   !sf_on_cpu_is_complete(&thread->on_cpu, &watch->switches);
	const uint64_t unrecorded_ns = is_unrecorded ? (uint64_t)thread->account.asleep_ns : 0;
	const uint64_t ns = thread->sleeps.passed_ns + thread->sleeps.short_ns + unrecorded_ns;
	const bool has_sample = thread->sleeps.sampled_ns;
	struct sf_weight weight;

	if (!watch->recorded_until_ns || !ns || !thread->watched || thread->only_awake)
		return;
	thread->account.asleep_ns -= (int64_t)unrecorded_ns;
	weight = sf_thread_take_sleep(thread, ns, sf_period_ns(watch->options->blocked_rate_mhz));
	if (has_sample)
		sf_relay_again(watch->relay, thread, now_ns, &weight);
	else
		sf_relay_loss(watch->relay, thread, cause_of_end(watch), &weight);
}

/* All but so much. */
static void forget_rest(struct sf_thread *thread, uint64_t kept_ns)
{
	if (thread->account.cpu_ns <= kept_ns)
		return;
	thread->first_cpu_ns += thread->account.cpu_ns - kept_ns;
	thread->account.cpu_ns = kept_ns;
}

void sf_watch_forget_elsewhere(const struct sf_watch *watch, struct sf_thread *thread, uint64_t sampled_ns)
{
	const uint64_t before_ns = thread->account.cpu_ns;

	if (!watch->most_unsampled_ns || before_ns <= sampled_ns + watch->most_unsampled_ns)
		return;
	forget_rest(thread, sampled_ns);
	thread->account.awake_ns -= (int64_t)(before_ns - sampled_ns);
}

static bool is_end_known(const struct sf_watch *watch, const struct sf_thread *thread)
{
	struct sf_task_run run;

	return thread->ended_cpu_ns || sf_on_cpu_is_complete(&thread->on_cpu, &watch->switches) || sf_task_run(&thread->task, &run);
}

/*
 * Where the thread's count at its end is not known, samples that were passed over since the last one that was walked show how long it
 * ran at least.
 */
static void settle_end(const struct sf_watch *watch, struct sf_thread *thread)
{
	sf_thread_settle_end(thread, &watch->switches);
	if (thread->account.cpu_ns < thread->batch.passed_ns && !is_end_known(watch, thread))
		sf_thread_add_cpu(thread, thread->batch.passed_ns - thread->account.cpu_ns);
}

/* Events of samples that were passed over, after the last one of which use was made. */
static void give_events(struct sf_watch *watch, struct sf_thread *thread, uint64_t now_ns)
{
	if (!thread->batch.passed.amount)
		return;
	if (thread->ran)
		sf_relay_again(watch->relay, thread, now_ns, &thread->batch.passed);
	else
		sf_relay_loss(watch->relay, thread, cause_of_end(watch), &thread->batch.passed);
}

/*
 * The ticks of the elapsed time of a rest: the thread may have waited for a CPU for most of it. A short rest of a thread
 * that was never looked at has none.
 */
static uint32_t ticks_of_rest(const struct sf_watch *watch, struct sf_thread *thread, const struct sf_weight *rest)
{
	const uint64_t ns = rest->wall_ns > rest->cpu_ns ? rest->wall_ns : rest->cpu_ns;

	if (!rest->ticks && !thread->ran && !thread->hold.is_requested)
		return 0;
	return sf_ticks_take(&thread->account.awake_over_ns, ns, sf_period_ns(watch->options->rate_mhz));
}

/* The thread has run since its last sample, or waited for a CPU. No sample stands for that time, or a share of that one does. */
static void give_rest(struct sf_watch *watch, struct sf_thread *thread, uint64_t now_ns)
{
	struct sf_weight weight = {
		.cpu_ns = thread->account.cpu_ns,
		.wall_ns = thread->account.awake_ns > 0 ? (uint64_t)thread->account.awake_ns : 0,
		.ticks = sf_unseen_ticks(watch, thread->account.cpu_ns),
	};
	const bool is_short = weight.cpu_ns && is_short_rest(watch, thread, &weight);

	/* Without CPU time it is elapsed time, in which the thread waited for a CPU. */
	if (!weight.cpu_ns && (!weight.wall_ns || !thread->ran || !thread->watched))
		return;
	weight.ticks = ticks_of_rest(watch, thread, &weight);
	if (is_short) {
		sf_relay_again(watch->relay, thread, now_ns, &weight);
	} else {
		watch->lost_cpu_ns += weight.cpu_ns;
		sf_relay_loss(watch->relay, thread, cause_of_rest(watch, thread), &weight);
	}
}

/* By the record of its exit, if there is one, and the thread had come into sight by then. */
static uint64_t end_of_thread(const struct sf_thread *thread, uint64_t now_ns)
{
	return thread->exited_ns > thread->sleeps.met_ns && thread->exited_ns < now_ns ? thread->exited_ns : now_ns;
}

void sf_watch_end_thread(struct sf_watch *watch, size_t index, uint64_t now_ns)
{
	struct sf_thread *thread = watch->threads.items[index];
	struct sf_watched_process *process = sf_watch_find_process(watch, thread->task.pid);
	const uint64_t end_ns = end_of_thread(thread, now_ns);

	sf_thread_settle(thread, now_ns, false, false);
	settle_end(watch, thread);
	/*
	 * The thread slept on from its last sample. On a machine whose CPUs are busy that may be all that there is of a
	 * short command: its next look is put off, or waits for a CPU.
	 */
	if (thread->sampled && !sf_thread_awake(thread) && !thread->is_refused)
		sf_thread_sleep_until(thread, now_ns);
	end_recorded_sleep(watch, thread);
	sf_watch_extend_sleep(watch, thread, end_ns);
	thread->account.cpu_ns += thread->account.beyond_ns;
	if (thread->is_refused)
		forget_rest(thread, 0);
	if (sf_watch_knows_by_samples(watch, thread) && !thread->begun)
		forget_rest(thread, thread->before_ns);
	sf_watch_forget_elsewhere(watch, thread, thread->batch.passed_ns);
	sf_thread_balance(thread);
	if (process)
		sf_little_use_end(watch, process, thread, now_ns);
	put_off_sleep(watch, thread);
	give_sleeps(watch, thread, end_ns);
	if (process)
		process->threads_cpu_ns += thread->run.cpu_ns - thread->first_cpu_ns;
	if (!thread->watched) /* --threads leaves it out: its time is nobody's loss */
		forget_rest(thread, 0);
	give_rest(watch, thread, end_ns);
	give_events(watch, thread, end_ns);
	memmove(&watch->threads.items[index], &watch->threads.items[index + 1],
		(--watch->threads.n - index) * sizeof(watch->threads.items[0]));
	sf_relay_thread_end(watch->relay, thread, end_ns, cause_of_end(watch));
}
