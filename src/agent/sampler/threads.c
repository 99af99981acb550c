/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The list of watched threads: its memory, pauses, and accounts of CPU time. The sampler's thread
 * owns the list; creation and destruction happen before it starts and after it ends.
 */
#include "agent/sampler/threads.h"

#include <sys/mman.h>

#include "agent/clocks/clocks.h"
#include "agent/libc/fork_memory.h"
#include "agent/threads/thread_entries.h"
#include "agent/threads/api_guard.h"
#include "agent/sampler/thread_watch.h"
#include "frozen/signal/handler.h"
#include "frozen/raw.h"
#include "frozen/signal/ticks.h"

#define NOTABLE_CPU_NS 1000000      /* below this a difference between two clocks is no loss */

/* --- memory --- */

#define ALL_SIZE (SF_THREAD_TABLE_SIZE * sizeof(struct sf_agent_thread))
#define PLACES_SIZE (SF_THREAD_TABLE_SIZE * sizeof(uint32_t))

static void unmap(struct sf_agent_threads *threads)
{
	if (threads->all)
		munmap(threads->all, ALL_SIZE);
	if (threads->places)
		munmap(threads->places, PLACES_SIZE);
	munmap(threads, sizeof(*threads));
}

static bool set_names(struct sf_agent_threads *threads, struct sf_error *err)
{
	const char *regex = threads->options->threads;

	if (!regex)
		return true;
	if (regcomp(&threads->names, regex, REG_EXTENDED | REG_NOSUB) != 0)
		return sf_fail(err, SF_E_INPUT, "'%.100s' is not a regular expression", regex);
	threads->has_names = true;
	return true;
}

struct sf_agent_threads *sf_agent_threads_create(const struct sf_agent_options *options, struct sf_workspace *workspace,
						 struct sf_error *err)
{
	struct sf_agent_threads *threads = sf_map_own(sizeof(*threads), SF_NOT_THERE);

	if (!threads) {
		sf_fail_memory(err);
		return NULL;
	}
	threads->options = options;
	threads->workspace = workspace;
	threads->all = sf_map_own(ALL_SIZE, SF_NOT_THERE);
	threads->places = sf_map_own(PLACES_SIZE, SF_NOT_THERE);
	threads->entries = sf_agent_thread_table();
	if (!threads->all || !threads->places || !threads->entries) {
		sf_fail_memory(err);
		unmap(threads);
		return NULL;
	}
	if (!set_names(threads, err)) {
		unmap(threads);
		return NULL;
	}
	sf_agent_thread_table_renew();
	atomic_store(&sf_handler.link.last_serial, 0);
	sf_handler.link.entries = threads->entries;
	return threads;
}

void sf_agent_threads_destroy(struct sf_agent_threads *threads)
{
	if (!threads)
		return;
	if (threads->has_names)
		regfree(&threads->names);
	unmap(threads);
}

/* --- clocks --- */

/* CPU time of the process but for the agent's own threads. */
static uint64_t others_cpu_ns(const struct sf_agent_threads *threads)
{
	uint64_t total_ns = sf_raw_process_cpu_ns() - threads->own_ended_cpu_ns, own_ns;

	for (unsigned i = 0; i < sizeof(threads->own) / sizeof(threads->own[0]); i++) {
		if (threads->own[i] && sf_agent_thread_cpu(threads->own[i], &own_ns) &&
		    own_ns < total_ns)
			total_ns -= own_ns;
	}
	return total_ns;
}

uint64_t sf_agent_threads_cpu_before(const struct sf_agent_threads *threads)
{
	uint64_t before_ns = others_cpu_ns(threads), cpu_ns;

	for (uint32_t i = 0; i < threads->n; i++) {
		const struct sf_agent_thread *thread = &threads->all[i];

		if (thread->watched && sf_agent_thread_cpu(thread->tid, &cpu_ns) && cpu_ns > thread->first_cpu_ns)
			before_ns -= cpu_ns - thread->first_cpu_ns;
	}
	return before_ns;
}

void sf_agent_threads_disarm(struct sf_agent_threads *threads)
{
	if (threads->clock && !threads->clock->per_thread)
		threads->clock->disarm(NULL);
	for (uint32_t i = 0; i < threads->n; i++)
		sf_agent_clock_disarm(threads->all[i].entry);
}

/* --- the end, and pauses --- */

/* CPU time of threads that came and went between two scans, or of their last moments. */
static void count_unseen(const struct sf_agent_threads *threads)
{
	uint64_t total_ns = others_cpu_ns(threads) - threads->before_cpu_ns;
	uint64_t seen_ns = threads->ended_cpu_ns + threads->paused_cpu_ns;

	if (threads->options->event || threads->options->only != SF_AGENT_ALL || threads->has_names || !threads->n_scans ||
	    total_ns <= seen_ns + NOTABLE_CPU_NS || (int64_t)total_ns < 0)
		return;
	sf_output_lose(&sf_handler.output, 0, SF_LOSS_UNSEEN, total_ns - seen_ns, 0,
		       sf_ticks_due(total_ns - seen_ns, sf_period_ns(threads->options->rate_mhz)));
}

/* A clock that went back belongs to another thread. */
static void read_clocks(struct sf_agent_threads *threads)
{
	uint64_t cpu_ns;

	for (uint32_t i = 0; i < threads->n; i++) {
		struct sf_agent_thread *thread = &threads->all[i];

		if (thread->watched && !thread->replaced && sf_agent_thread_cpu(thread->tid, &cpu_ns) && cpu_ns > thread->cpu_ns)
			thread->cpu_ns = cpu_ns;
	}
}

/* Threads without a sample are to end before those with one: sf_use_shares_move(). */
static void end_those(struct sf_agent_threads *threads, bool with_samples, uint64_t now_ns)
{
	for (uint32_t i = 0; i < threads->n; i++) {
		if (!atomic_load(&threads->all[i].entry->n_samples) == !with_samples)
			sf_thread_watch_end(threads, &threads->all[i], now_ns);
	}
}

void sf_agent_threads_end(struct sf_agent_threads *threads, uint64_t now_ns)
{
	sf_agent_threads_disarm(threads);
	read_clocks(threads);
	end_those(threads, false, now_ns);
	end_those(threads, true, now_ns);
	sf_thread_watch_lose_rest(threads);
	count_unseen(threads);
	threads->n = 0;
}

void sf_agent_threads_pause(struct sf_agent_threads *threads)
{
	threads->paused_cpu_ns -= others_cpu_ns(threads);
	read_clocks(threads);
}

/*
 * Drops the CPU time since the pause began. CPU time before the pause that no sample accounts for stays
 * on the thread's account. (A clock that went back belongs to another thread; the next poll finds that.)
 */
static void pass_over(struct sf_agent_thread *thread, uint64_t cpu_ns)
{
	const uint64_t spoken_ns = atomic_load(&thread->entry->accounted_ns);
	const uint64_t left_ns = thread->cpu_ns > spoken_ns ? thread->cpu_ns - spoken_ns : 0;
	uint32_t ticks;

	if (cpu_ns < thread->cpu_ns)
		return;
	thread->first_cpu_ns += sf_thread_entry_take_cpu(thread->entry, cpu_ns - left_ns, &ticks);
	thread->cpu_ns = thread->ticked_cpu_ns = cpu_ns;
}

void sf_agent_threads_resume(struct sf_agent_threads *threads, uint64_t now_ns)
{
	threads->paused_cpu_ns += others_cpu_ns(threads);
	for (uint32_t i = 0; i < threads->n; i++) {
		struct sf_agent_thread *thread = &threads->all[i];
		uint64_t cpu_ns;

		if (!thread->watched || !sf_agent_thread_cpu(thread->tid, &cpu_ns))
			continue;
		pass_over(thread, cpu_ns);
		thread->looked_ns = now_ns;
		thread->asleep_ns = 0;
		thread->sampled_asleep = false;
		sf_raw_wait_ns(thread->tid, &thread->wait_ns);
		atomic_store(&thread->entry->run_delay_ns, 0);
		sf_api_guard_restart(thread->entry, now_ns);
	}
}
