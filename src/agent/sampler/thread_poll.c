/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The thread poll: the sampler's check of one thread at a tick, which counts its CPU time, run-
 * queue delay and sleep. Only the sampler's thread calls this; it takes no lock and allocates
 * nothing.
 */
#include "agent/sampler/thread_poll.h"
#include "agent/clocks/clocks.h"

#include "agent/sampler/blocked_sample.h"
#include "agent/libc/own_proc.h"
#include "agent/threads/api_guard.h"
#include "agent/sampler/thread_watch.h"
#include "frozen/raw.h"
#include "frozen/signal/handler.h"
#include "frozen/signal/ticks.h"
#include "frozen/signal/weight.h"

#define DEAF_PERIODS 10
#define DEAF_NS 20000000
#define MUTE_LOOKS 4 /* at the mask of a thread that has no sample yet: each reads a file */

static bool wants_wall(const struct sf_agent *agent)
{
	return agent->options.clock != SF_AGENT_CPU && agent->options.blocked_rate_mhz > 0;
}

static bool is_leaving(const struct sf_agent_thread *thread)
{
	return atomic_load(&thread->entry->flags) & SF_ENTRY_LEAVING;
}

/*
 * Another thread has its id by now, and a clock that began anew. It comes into sight at the next
 * scan.
 */
static bool is_replaced(const struct sf_agent_thread *thread, uint64_t cpu_ns)
{
	return cpu_ns < thread->cpu_ns;
}

/*
 * For how long the thread has waited for a CPU since that was last counted. Linux 6.12 and later may give a sleeping thread to
 * another CPU before its run queue has let go of it, and count the whole sleep as a wait then. No thread that slept when it was
 * last polled is taken to have waited for longer than the longest wait.
 */
static uint64_t take_wait(struct sf_agent_thread *thread, uint64_t now_ns)
{
	const uint64_t before_ns = thread->wait_ns, elapsed_ns = now_ns - thread->looked_ns;
	const uint64_t most_ns = elapsed_ns > (uint64_t)SF_LONGEST_WAIT_NS ? elapsed_ns : SF_LONGEST_WAIT_NS;
	uint64_t waited_ns;

	sf_raw_wait_ns(thread->tid, &thread->wait_ns);
	waited_ns = thread->wait_ns - before_ns;
	return thread->sampled_asleep && waited_ns > most_ns ? most_ns : waited_ns;
}

/* More elapsed than it can have slept: a wait for a CPU is counted late, when it is over. */
static void count_time(struct sf_agent_thread *thread, uint64_t cpu_ns, uint64_t now_ns)
{
	const uint64_t waited_ns = take_wait(thread, now_ns);

	thread->asleep_ns += (int64_t)(now_ns - thread->looked_ns);
	thread->asleep_ns -= (int64_t)(cpu_ns - thread->cpu_ns);
	thread->asleep_ns -= (int64_t)waited_ns;
	thread->asleep_ns -= (int64_t)sf_api_guard_take(thread->entry);
	atomic_fetch_add(&thread->entry->run_delay_ns, waited_ns);
}

/* No sample came of it since the last look. */
static bool is_silent(const struct sf_agent_thread *thread)
{
	return atomic_load(&thread->entry->n_samples) == thread->n_samples_before;
}

/* Its clock should have rung long ago. */
static bool is_overdue(const struct sf_agent_thread *thread, uint64_t cpu_ns)
{
	uint64_t spoken_ns = atomic_load(&thread->entry->accounted_ns);
	uint64_t period_ns = atomic_load(&thread->entry->period_ns);

	return cpu_ns > spoken_ns + DEAF_NS && cpu_ns - spoken_ns > DEAF_PERIODS * period_ns;
}

/* Whether the thread has used a period of CPU time that no sample and no loss stands for. */
static bool is_due(const struct sf_agent_thread *thread, uint64_t cpu_ns)
{
	return cpu_ns > atomic_load(&thread->entry->accounted_ns) + atomic_load(&thread->entry->period_ns);
}

/*
 * Whether the thread, which has no sample yet, may block our signal. The many threads of a server use little time each,
 * and may end before they are overdue.
 */
static bool may_be_mute(struct sf_agent_thread *thread)
{
	return !atomic_load(&thread->entry->n_samples) && thread->n_mute_looks < MUTE_LOOKS;
}

void sf_thread_poll_lose_deaf(struct sf_agent_thread *thread, uint64_t cpu_ns)
{
	uint32_t ticks;
	uint64_t lost_ns = sf_thread_entry_take_cpu(thread->entry, cpu_ns, &ticks);

	atomic_fetch_or(&thread->entry->flags, SF_ENTRY_DEAF);
	if (lost_ns)
		sf_output_lose(&sf_handler.output, thread->serial, SF_LOSS_DEAF, lost_ns, lost_ns,
			       sf_ticks(lost_ns, sf_handler.config.period_ns));
}

static void hear(struct sf_agent_thread *thread)
{
	thread->blocked_us = false;
	if (sf_agent_thread_is_deaf(thread))
		atomic_fetch_and(&thread->entry->flags, ~(uint32_t)SF_ENTRY_DEAF);
}

static void look_at_timer(struct sf_agent *agent, struct sf_agent_thread *thread, uint64_t cpu_ns)
{
	const struct sf_thread_entry *entry = thread->entry;
	uint64_t period_ns = atomic_load(&entry->period_ns);

	if (!agent->threads->between || atomic_load(&entry->flags) & SF_ENTRY_PERF)
		return;
	if (period_ns < agent->threads->tick_ns)
		period_ns = agent->threads->tick_ns;
	if (sf_timer_misses(&thread->coverage, cpu_ns, atomic_load(&entry->n_samples), period_ns) &&
	    !sf_own_blocks(thread->tid, sf_handler.config.signal))
		sf_watch_arm_between(agent->threads, thread);
}

/*
 * Our handler, too, blocks our signal, and a thread may be displaced in there: deaf is who blocks it at two looks,
 * ran in between, and gave no sample.
 */
static void look_at_silent(struct sf_agent *agent, struct sf_agent_thread *thread, uint64_t cpu_ns)
{
	thread->n_mute_looks += thread->n_mute_looks < MUTE_LOOKS;
	if (sf_own_blocks(thread->tid, sf_handler.config.signal)) {
		if (thread->blocked_us)
			sf_thread_poll_lose_deaf(thread, cpu_ns);
		thread->blocked_us = true;
		return;
	}
	hear(thread);
	if (agent->clock && !sf_agent_clock_lives(thread->entry))
		sf_agent_threads_hurry();
}

static void look_at_clock(struct sf_agent *agent, struct sf_agent_thread *thread, uint64_t cpu_ns, uint64_t now_ns)
{
	const bool silent = is_silent(thread) && !(atomic_load(&thread->entry->flags) & SF_ENTRY_IN_ROUNDS);

	thread->n_samples_before = atomic_load(&thread->entry->n_samples);
	look_at_timer(agent, thread, cpu_ns);
	if (silent && is_due(thread, cpu_ns) &&
	    (is_overdue(thread, cpu_ns) || sf_agent_thread_is_deaf(thread) || may_be_mute(thread)))
		look_at_silent(agent, thread, cpu_ns);
	else if (!silent)
		hear(thread);
	sf_agent_clock_tune(thread->entry, now_ns, !silent, &thread->clock_spared_ns);
}

/* A sample of a sleep that has none, if the limit of their cost allows one. */
static void take_asleep(struct sf_agent *agent, struct sf_agent_thread *thread, uint64_t now_ns)
{
	struct sf_sleep_budget *budget = &agent->threads->sleep_budget;
	uint64_t before_ns;

	if (!sf_sleep_budget_has_room(budget, !thread->sleeps_since_ns))
		return;
	before_ns = sf_raw_thread_cpu_ns();
	sf_blocked_sample_take(agent, thread, now_ns);
	sf_sleep_budget_taken(budget, sf_raw_thread_cpu_ns() - before_ns);
}

/* Polls a thread that ran since the last poll. */
static void look_at_awake(struct sf_agent *agent, struct sf_agent_thread *thread, uint64_t cpu_ns,
			  uint64_t now_ns)
{
	if (wants_wall(agent)) {
		sf_blocked_sample_again(&agent->options, thread, now_ns);
		count_time(thread, cpu_ns, now_ns);
	}
	thread->sampled_asleep = false;
	thread->cpu_ns = cpu_ns;
	look_at_clock(agent, thread, cpu_ns, now_ns);
	if (wants_wall(agent))
		take_asleep(agent, thread, now_ns);
}

static void look_at_still(struct sf_agent *agent, struct sf_agent_thread *thread, uint64_t now_ns)
{
	if (!wants_wall(agent))
		return;
	thread->asleep_ns += (int64_t)(now_ns - thread->looked_ns);
	if (thread->sampled_asleep && !sf_blocked_sample_is_out_of_date(thread))
		sf_blocked_sample_on(&agent->options, thread, now_ns);
	else
		take_asleep(agent, thread, now_ns);
}

/* Its account is settled up to when it came to us: what it slept before extends its last sample asleep. */
static void look_at_visitor(struct sf_agent *agent, struct sf_agent_thread *thread, uint64_t cpu_ns,
			    uint64_t since_ns)
{
	if (since_ns <= thread->looked_ns)
		return;
	if (wants_wall(agent)) {
		count_time(thread, cpu_ns, since_ns);
		sf_blocked_sample_again(&agent->options, thread, since_ns);
	}
	thread->sampled_asleep = false;
	thread->cpu_ns = cpu_ns;
	thread->looked_ns = since_ns;
}

void sf_thread_poll(struct sf_agent *agent, struct sf_agent_thread *thread, uint64_t now_ns)
{
	uint64_t cpu_ns, visit_since_ns;

	if (!thread->watched || thread->replaced || is_leaving(thread))
		return;
	if (!sf_agent_thread_cpu(thread->tid, &cpu_ns))
		return;
	if (is_replaced(thread, cpu_ns)) {
		thread->replaced = true;
		sf_agent_threads_hurry();
		return;
	}
	if (agent->options.event) { /* no time is sampled */
		thread->cpu_ns = cpu_ns;
		return;
	}
	visit_since_ns = sf_api_guard_since(thread->entry);
	if (visit_since_ns) {
		look_at_visitor(agent, thread, cpu_ns, visit_since_ns);
		return;
	}
	if (cpu_ns == thread->cpu_ns)
		look_at_still(agent, thread, now_ns);
	else
		look_at_awake(agent, thread, cpu_ns, now_ns);
	thread->looked_ns = now_ns;
}
