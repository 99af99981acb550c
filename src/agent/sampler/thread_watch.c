/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Begins and ends the watch of one thread: its records in the outbox, its CPU clock, its name.
 * Only the sampler's thread calls this.
 */
#include "agent/sampler/thread_watch.h"
#include "agent/clocks/clocks.h"

#include <string.h>

#include "agent/sampler/blocked_sample.h"
#include "agent/sampler/thread_rest.h"
#include "agent/libc/own_proc.h"
#include "agent/threads/thread_entries.h"
#include "agent/threads/api_guard.h"
#include "frozen/raw.h"
#include "frozen/signal/event_sample.h"
#include "frozen/signal/handler.h"
#include "frozen/signal/ticks.h"
#include "stream/record.h"

#define SCANS_PER_NAME 32

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
	sf_event_lose(&sf_handler.output, thread->entry, SF_LOSS_REST);
	if (sf_agent_thread_is_deaf(thread) || thread->blocked_us)
		cause = SF_LOSS_DEAF;
	sf_thread_rest_settle(threads, thread, cause, now_ns);
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
