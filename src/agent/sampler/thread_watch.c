/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Begins and ends the watch of one thread: its records in the outbox, its CPU clock, its name.
 * Only the sampler's thread calls this.
 */
#include "agent/sampler/thread_watch.h"
#include "agent/clocks/timer.h"

#include <string.h>

#include "agent/sampler/blocked_sample.h"
#include "agent/libc/own_proc.h"
#include "agent/threads/thread_entries.h"
#include "agent/threads/api_guard.h"
#include "frozen/signal/handler.h"
#include "frozen/output/outbox.h"
#include "stream/record.h"

#define SCANS_PER_NAME 32

/* --- its clock --- */

static bool is_leaving(const struct sf_thread_entry *entry)
{
	return atomic_load(&entry->flags) & SF_ENTRY_LEAVING;
}

/*
 * The thread itself may take its clock off meanwhile (sf_agent_thread_before_exec): it says so
 * first and then waits while the entry is busy; we say that it is busy and then look. So one of us
 * sees the other.
 */
void sf_watch_arm(struct sf_agent_threads *threads, struct sf_agent_thread *thread)
{
	uint32_t none = 0;

	if (!threads->clock || !threads->clock->per_thread)
		return;
	if (!atomic_compare_exchange_strong(&thread->entry->asked, &none, SF_REQUEST_BUSY))
		return;
	if (!is_leaving(thread->entry))
		sf_agent_clock_arm(threads->clock, thread->entry, thread->tid);
	sf_agent_entry_done(thread->entry);
}

void sf_watch_arm_between(struct sf_agent_threads *threads, struct sf_agent_thread *thread)
{
	uint32_t none = 0;

	if (!atomic_compare_exchange_strong(&thread->entry->asked, &none, SF_REQUEST_BUSY))
		return;
	sf_agent_clock_disarm(thread->entry);
	if (!is_leaving(thread->entry))
		sf_agent_clock_arm(threads->between, thread->entry, thread->tid);
	sf_agent_entry_done(thread->entry);
}

/* --- telling --- */

static bool put(enum sf_stream_type type, const void *record, size_t size, const char *text,
		size_t text_size)
{
	const struct sf_outbox_piece pieces[] = {
		{ (const char *)record + sizeof(struct sf_record_header),
		  size - sizeof(struct sf_record_header) },
		{ text, text_size },
	};

	return sf_handler_tell((uint16_t)type, pieces, text_size ? 2 : 1);
}

/*
 * Without room the record is written again after the next scan, because the collector drops samples of
 * a thread without a THREAD record.
 */
void sf_watch_tell_name(struct sf_agent_thread *thread, uint64_t now_ns)
{
	const struct sf_stream_thread record = {
		.serial = thread->serial,
		.tid = thread->tid,
		.time_ns = now_ns,
		.name_size = (uint32_t)strlen(thread->name),
	};

	thread->told = put(SF_STREAM_THREAD, &record, sizeof(record), thread->name,
			   record.name_size);
}

static void tell_end(const struct sf_agent_thread *thread, uint64_t cpu_ns, uint64_t now_ns)
{
	const struct sf_stream_thread_end record = {
		.serial = thread->serial,
		.time_ns = now_ns,
		.cpu_ns = cpu_ns,
	};

	put(SF_STREAM_THREAD_END, &record, sizeof(record), NULL, 0);
}

/* --- its watch --- */

/* The ticks that were due in so much CPU time: none where it was short. */
uint32_t sf_watch_ticks(const struct sf_agent_threads *threads, uint64_t cpu_ns)
{
	uint64_t rate_mhz = threads->options->rate_mhz;

	return (uint32_t)((cpu_ns / 1000 * rate_mhz + 500000000) / 1000000000);
}

static bool is_wanted(const struct sf_agent_threads *threads, const struct sf_agent_thread *thread)
{
	switch (threads->options->only) {
	case SF_AGENT_REGISTERED:
		if (!(atomic_load(&thread->entry->flags) & SF_ENTRY_REGISTERED))
			return false;
		break;
	case SF_AGENT_MAIN:
		if (thread->tid != sf_handler.pid)
			return false;
		break;
	default:
		break;
	}
	return thread->matches;
}

static void begin_watch(struct sf_agent_threads *threads, struct sf_agent_thread *thread,
			uint64_t now_ns)
{
	struct sf_thread_entry *entry = thread->entry;
	uint64_t cpu_ns, switches;

	if (!sf_agent_thread_cpu(thread->tid, &cpu_ns))
		return;
	thread->watched = true;
	thread->serial = ++threads->last_serial;
	thread->sampled_asleep = false;
	thread->first_cpu_ns = thread->cpu_ns = thread->ticked_cpu_ns = cpu_ns;
	sf_timer_coverage_begin(&thread->coverage, cpu_ns, atomic_load(&entry->n_samples));
	thread->looked_ns = now_ns;
	thread->asleep_ns = 0;
	if (!sf_own_run(thread->tid, &thread->wait_ns, &switches))
		thread->wait_ns = 0;
	atomic_store(&entry->spoken_ns, cpu_ns);
	atomic_store(&entry->waited_ns, 0);
	sf_api_guard_restart(entry, now_ns);
	atomic_store(&entry->period_ns, sf_handler.period_ns);
	atomic_store(&entry->serial, thread->serial);
	atomic_fetch_add(&sf_handler.n_with_serial, 1);
	atomic_fetch_and(&entry->flags, ~(uint32_t)(SF_ENTRY_UNWATCHED | SF_ENTRY_DEAF));
	sf_watch_tell_name(thread, now_ns);
	sf_watch_arm(threads, thread);
}

/* A thread that has ended is known up to its last look or sample, whichever was later. */
void sf_watch_end(struct sf_agent_threads *threads, struct sf_agent_thread *thread,
		  uint64_t now_ns)
{
	uint64_t spoken_ns, cpu_ns, lost_ns = 0;
	uint32_t ticks;

	if (!thread->watched)
		return;
	sf_agent_clock_disarm(thread->entry);
	atomic_fetch_or(&thread->entry->flags, SF_ENTRY_UNWATCHED);
	sf_blocked_sample_again(threads->options, thread, now_ns);
	if (!thread->replaced && sf_agent_thread_cpu(thread->tid, &cpu_ns))
		thread->cpu_ns = cpu_ns;
	lost_ns = sf_thread_entry_take_cpu(thread->entry, thread->cpu_ns, &ticks);
	if (lost_ns)
		sf_handler_lose(thread->serial, SF_LOSS_GONE, lost_ns, lost_ns,
			       sf_watch_ticks(threads, lost_ns));
	spoken_ns = atomic_load(&thread->entry->spoken_ns);
	cpu_ns = spoken_ns > thread->first_cpu_ns ? spoken_ns - thread->first_cpu_ns : 0;
	threads->ended_cpu_ns += cpu_ns;
	thread->watched = false;
	tell_end(thread, cpu_ns, now_ns);
}

void sf_watch_settle(struct sf_agent_threads *threads, struct sf_agent_thread *thread,
		     uint64_t now_ns)
{
	bool wanted = is_wanted(threads, thread);

	if (wanted && !thread->watched)
		begin_watch(threads, thread, now_ns);
	else if (!wanted && thread->watched)
		sf_watch_end(threads, thread, now_ns);
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
