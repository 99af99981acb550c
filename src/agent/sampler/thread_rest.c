/* SPDX-License-Identifier: Apache-2.0 */
/* The rest of a thread's CPU time: thread_rest.h. */
#include "agent/sampler/thread_rest.h"

#include "frozen/signal/handler.h"
#include "frozen/signal/ticks.h"
#include "stream/record.h"

#define REST_TICKS 4 /* a rest of at most so many ticks of its clock is not lost */

static uint64_t more(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

/* CPU time between two moments at which the thread may have a sample. */
static uint64_t every_ns(const struct sf_agent_threads *threads, const struct sf_agent_thread *thread)
{
	return more(atomic_load(&thread->entry->period_ns), threads->tick_ns);
}

/* --- threads that use little --- */

/* Whether the thread's samples come at random moments of its CPU time. */
static bool takes_part(const struct sf_agent_threads *threads, const struct sf_agent_thread *thread)
{
	const uint32_t other = SF_ENTRY_DEAF | SF_ENTRY_IN_ROUNDS;

	return threads->clock && threads->clock->per_thread && threads->clock->arm && !threads->options->event && thread->watched &&
	       !thread->blocked_us && !(atomic_load(&thread->entry->flags) & other);
}

static struct sf_cpu_use use_of(const struct sf_agent_threads *threads, const struct sf_agent_thread *thread)
{
	const uint64_t accounted_ns = atomic_load(&thread->entry->accounted_ns), cpu_ns = more(thread->cpu_ns, accounted_ns);
	const uint64_t n_samples = atomic_load(&thread->entry->n_samples);

	return (struct sf_cpu_use){
		.used_ns = (double)(cpu_ns - thread->first_cpu_ns),
		.unsampled_ns = n_samples ? 0 : (double)(cpu_ns - accounted_ns),
		.every_ns = (double)every_ns(threads, thread),
		.n_samples = (uint32_t)n_samples,
	};
}

static bool get(const void *arg, size_t i, struct sf_cpu_use *ret)
{
	const struct sf_agent_threads *threads = arg;

	if (!takes_part(threads, &threads->all[i]))
		return false;
	*ret = use_of(threads, &threads->all[i]);
	return true;
}

static bool uses_little(const struct sf_agent_threads *threads, const struct sf_agent_thread *thread, const struct sf_cpu_use *use)
{
	return takes_part(threads, thread) && sf_cpu_use_is_little(use);
}

/* CPU time that the last sample of such a thread takes of other threads; below 0: that the thread gives. */
static int64_t move(struct sf_agent_threads *threads, const struct sf_cpu_use *use, uint64_t now_ns)
{
	sf_use_shares_find(&threads->little, threads->n, get, threads, now_ns);
	return sf_use_shares_move(&threads->little, use);
}

/* --- the end of a watch --- */

/*
 * Whether CPU time after a thread's last sample is that sample's, too. As by the engines outside, it is not where it is more
 * than the thread's samples stand for, and more than some ticks of its clock, unless the thread uses little.
 */
static bool is_short(const struct sf_agent_threads *threads, const struct sf_agent_thread *thread, bool is_little, uint64_t rest_ns)
{
	const uint64_t counted_ns = atomic_load(&thread->entry->accounted_ns) - thread->first_cpu_ns;

	return atomic_load(&thread->entry->n_samples) && rest_ns < counted_ns &&
	       (2 * rest_ns <= counted_ns || rest_ns <= REST_TICKS * every_ns(threads, thread) || is_little);
}

/* False: it found no room. */
static bool give_to_last_sample(const struct sf_agent_threads *threads, const struct sf_agent_thread *thread, uint64_t ns, uint64_t now_ns)
{
	const struct sf_stream_again again = {
		.serial = thread->serial,
		.time_ns = now_ns,
		.ticks = sf_ticks(ns, sf_period_ns(threads->options->rate_mhz)),
		.cpu_ns = ns,
		.wall_ns = ns,
	};

	return sf_output_put_record(&sf_handler.output, SF_STREAM_AGAIN, &again, sizeof(again), NULL, 0);
}

static void lose(const struct sf_agent_threads *threads, uint32_t serial, enum sf_loss cause, uint64_t ns)
{
	if (ns)
		sf_output_lose(&sf_handler.output, serial, cause, ns, ns, sf_ticks_due(ns, sf_period_ns(threads->options->rate_mhz)));
}

void sf_thread_rest_settle(struct sf_agent_threads *threads, const struct sf_agent_thread *thread, enum sf_loss cause, uint64_t now_ns)
{
	const struct sf_cpu_use use = use_of(threads, thread);
	const bool is_little = cause != SF_LOSS_DEAF && uses_little(threads, thread, &use);
	const int64_t moved_ns = is_little ? move(threads, &use, now_ns) : 0;
	uint32_t ticks;
	uint64_t lost_ns = sf_thread_entry_take_cpu(thread->entry, thread->cpu_ns, &ticks), given_ns = 0;

	if (threads->options->event)
		return;
	if (cause != SF_LOSS_DEAF && is_short(threads, thread, is_little, lost_ns)) {
		given_ns = lost_ns;
		lost_ns = 0;
	}
	if (moved_ns > 0)
		given_ns += (uint64_t)moved_ns;
	else
		lost_ns -= lost_ns < (uint64_t)-moved_ns ? lost_ns : (uint64_t)-moved_ns;
	if (given_ns && !give_to_last_sample(threads, thread, given_ns, now_ns))
		lost_ns += given_ns;
	lose(threads, thread->serial, cause, lost_ns);
}

void sf_thread_rest_lose(struct sf_agent_threads *threads)
{
	lose(threads, 0, SF_LOSS_REST, (uint64_t)threads->little.pool_ns);
	threads->little = (struct sf_use_shares){ 0 };
}
