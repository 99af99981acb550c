/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Begins and ends the watch of one thread: its records in the outbox, its CPU clock, its name, and the rest of its CPU time.
 * Only the sampler's thread calls this.
 */
#include "agent/sampler/thread_watch.h"
#include "agent/clocks/clocks.h"

#include <string.h>

#include "agent/sampler/blocked_sample.h"
#include "agent/libc/own_proc.h"
#include "agent/threads/thread_entries.h"
#include "agent/threads/api_guard.h"
#include "frozen/raw.h"
#include "frozen/signal/event.h"
#include "frozen/signal/handler.h"
#include "frozen/signal/ticks.h"
#include "stream/record.h"

#define SCANS_PER_NAME 32
#define REST_TICKS 4 /* a rest of at most so many ticks of its clock is not lost */

/* --- its clock --- */

/*
 * Arms the thread's clock as this kind. A thread that is about to exec removes its own clock
 * (sf_agent_thread_before_exec): it sets SF_ENTRY_LEAVING and then waits while clock_busy is set. The
 * sampler sets clock_busy and then reads the flag. So at least one of them sees the other.
 */
static void arm(const struct sf_agent_clock_kind *kind, struct sf_agent_thread *thread)
{
	struct sf_thread_entry *entry = thread->entry;

	if (kind->is_perf)
		sf_agent_thread_table_copy_to_children();
	atomic_store(&entry->clock_busy, 1);
	sf_agent_clock_disarm(entry);
	if (!(atomic_load(&entry->flags) & SF_ENTRY_LEAVING))
		sf_agent_clock_arm(kind, entry, thread->tid);
	sf_agent_entry_done(entry, &entry->clock_busy);
}

void sf_watch_arm(struct sf_agent_threads *threads, struct sf_agent_thread *thread)
{
	if (threads->clock && threads->clock->per_thread)
		arm(threads->clock, thread);
}

void sf_watch_arm_between(struct sf_agent_threads *threads, struct sf_agent_thread *thread)
{
	arm(threads->between, thread);
}

/* --- its records --- */

/*
 * Without room the record is written again after the next scan, because the collector drops samples of
 * a thread without a THREAD record.
 */
void sf_watch_write_name(struct sf_agent_thread *thread, uint64_t now_ns)
{
	const struct sf_stream_thread record = {
		.serial = thread->serial,
		.tid = thread->tid,
		.time_ns = now_ns,
		.name_size = (uint32_t)strlen(thread->name),
	};

	thread->is_written = sf_output_put_record(&sf_handler.output, SF_STREAM_THREAD, &record,
					    sizeof(record), thread->name, record.name_size);
}

static void write_end(const struct sf_agent_thread *thread, uint64_t cpu_ns, uint64_t now_ns)
{
	const struct sf_stream_thread_end record = {
		.serial = thread->serial,
		.time_ns = now_ns,
		.cpu_ns = cpu_ns,
	};

	sf_output_put_record(&sf_handler.output, SF_STREAM_THREAD_END, &record, sizeof(record), NULL, 0);
}

static uint64_t more(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

/* CPU time between two moments at which the thread may have a sample. */
static uint64_t every_ns(const struct sf_agent_threads *threads, const struct sf_agent_thread *thread)
{
	return more(atomic_load(&thread->entry->period_ns), threads->tick_ns);
}

/* --- the CPU time of a thread that uses little, which other such threads may be given --- */

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

/* --- CPU time for which no sample stands when the watch ends: given to a sample, or lost --- */

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

/* thread->cpu_ns is the last that is known of its clock. `cause`: of what is lost. */
static void settle_rest(struct sf_agent_threads *threads, const struct sf_agent_thread *thread, enum sf_loss cause, uint64_t now_ns)
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

void sf_thread_watch_lose_rest(struct sf_agent_threads *threads)
{
	lose(threads, 0, SF_LOSS_REST, (uint64_t)threads->little.pool_ns);
	threads->little = (struct sf_use_shares){ 0 };
}

/* --- its watch --- */

static bool is_wanted(const struct sf_agent_threads *threads, const struct sf_agent_thread *thread)
{
	switch (threads->options->only) {
	case SF_AGENT_REGISTERED:
		if (!(atomic_load(&thread->entry->flags) & SF_ENTRY_REGISTERED))
			return false;
		break;
	case SF_AGENT_MAIN:
		if (thread->tid != sf_handler.config.pid)
			return false;
		break;
	default:
		break;
	}
	return thread->matches;
}

/* A thread that has counted an event has a serial by now (agent/threads/events.c); only the first watch takes that over. */
static uint32_t give_serial(struct sf_agent_thread *thread)
{
	uint32_t present = thread->serial;
	const uint32_t fresh = atomic_fetch_add(&sf_handler.link.last_serial, 1) + 1;

	if (!atomic_compare_exchange_strong(&thread->entry->serial, &present, fresh))
		return present;
	atomic_fetch_add(&sf_handler.link.n_with_serial, 1);
	return fresh;
}

static void begin_watch(struct sf_agent_threads *threads, struct sf_agent_thread *thread,
			uint64_t now_ns)
{
	struct sf_thread_entry *entry = thread->entry;
	uint64_t cpu_ns;

	if (!sf_agent_thread_cpu(thread->tid, &cpu_ns))
		return;
	thread->watched = true;
	thread->sampled_asleep = false;
	thread->first_cpu_ns = thread->cpu_ns = thread->ticked_cpu_ns = cpu_ns;
	sf_timer_coverage_begin(&thread->coverage, cpu_ns, atomic_load(&entry->n_samples));
	thread->looked_ns = now_ns;
	thread->asleep_ns = 0;
	if (!sf_raw_wait_ns(thread->tid, &thread->wait_ns))
		thread->wait_ns = 0;
	atomic_store(&entry->accounted_ns, cpu_ns);
	atomic_store(&entry->run_delay_ns, 0);
	sf_api_guard_restart(entry, now_ns);
	atomic_store(&entry->period_ns, sf_handler.config.period_ns);
	thread->serial = give_serial(thread);
	atomic_fetch_and(&entry->flags, ~(uint32_t)(SF_ENTRY_UNWATCHED | SF_ENTRY_DEAF));
	sf_watch_write_name(thread, now_ns);
	sf_watch_arm(threads, thread);
}

/* A thread that has ended is known up to its last look or sample, whichever was later. */
void sf_thread_watch_end(struct sf_agent_threads *threads, struct sf_agent_thread *thread,
		  uint64_t now_ns)
{
	uint64_t spoken_ns, cpu_ns;
	enum sf_loss cause = SF_LOSS_GONE;

	if (!thread->watched)
		return;
	sf_agent_clock_disarm(thread->entry);
	atomic_fetch_or(&thread->entry->flags, SF_ENTRY_UNWATCHED);
	sf_handler_settle_kept(&sf_handler, threads->workspace, thread->serial); /* nothing of it comes after its end */
	sf_blocked_sample_again(threads->options, thread, now_ns);
	if (!thread->replaced && sf_agent_thread_cpu(thread->tid, &cpu_ns)) {
		thread->cpu_ns = cpu_ns;
		cause = SF_LOSS_REST; /* it is the watch that ends */
	}
	sf_event_lose(&sf_handler.output, thread->entry);
	if (sf_agent_thread_is_deaf(thread) || thread->blocked_us)
		cause = SF_LOSS_DEAF;
	settle_rest(threads, thread, cause, now_ns);
	spoken_ns = atomic_load(&thread->entry->accounted_ns);
	cpu_ns = spoken_ns > thread->first_cpu_ns ? spoken_ns - thread->first_cpu_ns : 0;
	threads->ended_cpu_ns += cpu_ns;
	thread->watched = false;
	write_end(thread, threads->options->event ? 0 : cpu_ns, now_ns);
}

void sf_watch_settle(struct sf_agent_threads *threads, struct sf_agent_thread *thread,
		     uint64_t now_ns)
{
	bool wanted = is_wanted(threads, thread);

	if (wanted && !thread->watched)
		begin_watch(threads, thread, now_ns);
	else if (!wanted && thread->watched)
		sf_thread_watch_end(threads, thread, now_ns);
	else if (!wanted)
		atomic_fetch_or(&thread->entry->flags, SF_ENTRY_UNWATCHED);
}

/* --- names --- */

/* True when it is another than before. */
bool sf_watch_read_name(const struct sf_agent_threads *threads, struct sf_agent_thread *thread)
{
	char name[SF_AGENT_NAME];
	uint32_t flags = atomic_fetch_and(&thread->entry->flags, ~(uint32_t)SF_ENTRY_RENAMED);

	if (flags & SF_ENTRY_NAMED)
		sf_agent_entry_name(thread->entry, name);
	else
		sf_own_name(thread->tid, name, sizeof(name));
	if (strcmp(name, thread->name) == 0 || (!*name && thread->watched))
		return false;
	memcpy(thread->name, name, sizeof(name));
	thread->matches = !threads->has_names ||
			  regexec(&threads->names, thread->name, 0, NULL, 0) == 0;
	return true;
}

/* Programs name a thread soon after it began, or never: so soon, and then now and then. */
bool sf_watch_name_is_due(const struct sf_agent_threads *threads,
			  const struct sf_agent_thread *thread)
{
	uint32_t age = threads->n_scans - thread->first_scan;

	return (atomic_load(&thread->entry->flags) & SF_ENTRY_RENAMED) || (age & (age - 1)) == 0 ||
	       age % SCANS_PER_NAME == 0;
}
