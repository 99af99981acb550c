/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The scan for new and ended threads: part of threads.h. Only the sampler's thread calls this; it must
 * not wait for a lock that a held thread may own.
 */
#include <string.h>

#include "agent/host/spawn.h"
#include "agent/threads/exec_preparation.h"
#include "agent/libc/own_proc.h"
#include "agent/threads/note.h"
#include "agent/threads/thread_entries.h"
#include "agent/sampler/threads.h"
#include "agent/sampler/thread_watch.h"
#include "frozen/signal/handler.h"
#include "frozen/raw.h"

#define SCAN_SHARE 100              /* a scan is followed by this many times its cost of pause */
#define STEADY_SHARE 1000               /* ... where there are as many threads as at the last one */
#define ADD_SHARE 10                    /* ... and taking in new ones a tenth */
#define SCAN_MIN_NS 2000000         /* where threads come and go */
#define SCAN_MAX_NS 100000000       /* where none does, and half as long again where a look comes by
				     * then; what one that did not register does until then is unseen
				     */

/* --- the clock of the process --- */

/* Arms the clock of the process, if the kind has one clock for the whole process. */
static void arm_process(struct sf_agent_threads *threads)
{
	if (!threads->clock || threads->clock->per_thread || sf_agent_exec_under_way())
		return;
	threads->clock->arm(NULL, 0);
	if (sf_agent_exec_under_way())
		threads->clock->disarm(NULL);
}

/* --- scanning --- */

static bool is_own(const struct sf_agent_threads *threads, int32_t tid)
{
	for (unsigned i = 0; i < sizeof(threads->own) / sizeof(threads->own[0]); i++) {
		if (threads->own[i] == tid)
			return true;
	}
	return sf_spawned_includes(tid);
}

static struct sf_agent_thread *find(struct sf_agent_threads *threads, int32_t tid)
{
	struct sf_thread_entry *entry = sf_thread_table_find(threads->entries, tid);
	uint32_t place = entry ? threads->places[entry - threads->entries] : 0;

	return place && threads->all[place - 1].tid == tid ? &threads->all[place - 1] : NULL;
}

static void add(struct sf_agent_threads *threads, int32_t tid, uint64_t now_ns)
{
	struct sf_agent_thread *thread;
	bool new_entry;
	struct sf_thread_entry *entry = sf_agent_claim_entry(threads->entries, tid, &new_entry);

	if (!entry || threads->n == SF_THREAD_TABLE_SIZE)
		return;
	thread = &threads->all[threads->n++];
	*thread = (struct sf_agent_thread){
		.entry = entry, .tid = tid, .matches = !threads->has_names };
	threads->places[entry - threads->entries] = threads->n;
	thread->first_scan = thread->last_scan = threads->n_scans;
	atomic_fetch_or(&entry->flags, SF_ENTRY_UNWATCHED);
	sf_watch_read_name(threads, thread);
	sf_watch_settle(threads, thread, now_ns);
	threads->pause_ns = 0;
}

struct scan {
	struct sf_agent_threads *threads;
	uint64_t now_ns;
	uint64_t began_cpu_ns;     /* the sampler's own clock */
	uint64_t adding_ns;        /* of it: for threads that are new */
};

static void see(void *arg, int32_t tid)
{
	struct scan *scan = arg;
	struct sf_agent_threads *threads = scan->threads;
	struct sf_agent_thread *thread = find(threads, tid);

	if (is_own(threads, tid))
		return;
	if (!thread) {
		uint64_t before_ns = sf_raw_thread_cpu_ns();

		add(threads, tid, scan->now_ns);
		scan->adding_ns += sf_raw_thread_cpu_ns() - before_ns;
		return;
	}
	if (thread->replaced)
		return;
	thread->last_scan = threads->n_scans;
}

/* The entry of an ended thread is given up only when no request for it is open. */
static bool drop(struct sf_agent_threads *threads, uint32_t i, uint64_t now_ns)
{
	struct sf_agent_thread *thread = &threads->all[i];
	uint32_t *place;

	if (atomic_load(&thread->entry->request))
		return false;
	sf_thread_watch_end(threads, thread, now_ns);
	place = &threads->places[thread->entry - threads->entries];
	if (*place == i + 1)
		*place = 0;
	if (atomic_load(&thread->entry->tid) == thread->tid)
		sf_thread_table_leave(thread->entry);
	*thread = threads->all[--threads->n];
	if (i < threads->n)
		threads->places[thread->entry - threads->entries] = i + 1;
	threads->pause_ns = 0;
	return true;
}

/* Removes the clock of a thread that is about to exec and waits for this. */
static void remove_unwanted_clock(struct sf_thread_entry *entry)
{
	if (!atomic_load(&entry->clock_unwanted))
		return;
	sf_agent_clock_disarm(entry);
	sf_agent_entry_done(entry, &entry->clock_unwanted);
}

static void settle(struct sf_agent_threads *threads, struct sf_agent_thread *thread,
		   uint64_t now_ns)
{
	bool renamed = sf_watch_name_is_due(threads, thread) && sf_watch_read_name(threads, thread);

	if (thread->watched && (renamed || !thread->is_written))
		sf_watch_write_name(thread, now_ns);
	sf_watch_settle(threads, thread, now_ns);
	remove_unwanted_clock(thread->entry);
	if (thread->watched && atomic_load(&thread->entry->clock) < 0)
		sf_watch_arm(threads, thread);
}

static void settle_all(struct sf_agent_threads *threads, uint64_t now_ns)
{
	for (uint32_t i = threads->n; i-- > 0;) {
		if (threads->all[i].last_scan == threads->n_scans)
			settle(threads, &threads->all[i], now_ns);
		else
			drop(threads, i, now_ns);
	}
}

/*
 * A change makes the next pause the shortest, none makes it twice as long; within what it costs. Taking in a new thread
 * costs more than a look at an old one, but once: a program that starts thousands is followed all the same.
 */
static void set_pause(struct sf_agent_threads *threads, const struct scan *scan)
{
	uint64_t looking_ns = sf_raw_thread_cpu_ns() - scan->began_cpu_ns - scan->adding_ns;
	uint64_t least_ns = looking_ns * SCAN_SHARE + scan->adding_ns * ADD_SHARE;
	uint64_t pause_ns = threads->pause_ns ? threads->pause_ns * 2 : SCAN_MIN_NS;

	if (pause_ns > SCAN_MAX_NS)
		pause_ns = SCAN_MAX_NS;
	if (pause_ns < least_ns)
		pause_ns = least_ns;
	threads->pause_ns = pause_ns;
	threads->next_scan_ns = scan->now_ns + pause_ns;
	threads->least_scan_ns = scan->now_ns + least_ns;
	threads->full_scan_ns = scan->now_ns + looking_ns * STEADY_SHARE;
}

/*
 * Where a thousand threads idle, a scan each time it may cost 1 % is most of what we cost. How many there are is one system
 * call; only where one has ended for each that came, they are found a little later.
 */
static bool is_steady(struct sf_agent_threads *threads, uint64_t now_ns)
{
	uint64_t n = sf_own_thread_count();
	bool steady = n && n == threads->n_counted && now_ns < threads->full_scan_ns;

	threads->n_counted = n;
	return steady;
}

/* For new threads that registered it waits no longer than for what scans may cost. */
static bool expects(struct sf_agent_threads *threads)
{
	if (!sf_agent_threads_expected())
		return false;
	if (threads->next_scan_ns > threads->least_scan_ns)
		threads->next_scan_ns = threads->least_scan_ns;
	return true;
}

/* The agent keeps no folder of /proc open: that would be a way out of the program's new root. */
static void note_if_blind(struct sf_agent_threads *threads)
{
	static const char text[] = "the program has no /proc any more, as after chroot(): threads that it makes and code that it maps "
				   "from then on are not sampled; an engine that watches from outside samples them";

	if (!threads->noted_blind && !sf_own_thread_count())
		threads->noted_blind = sf_note(text);
}

uint64_t sf_agent_threads_scan_ns(struct sf_agent_threads *threads, uint64_t look_ns)
{
	const bool waits = !expects(threads) && look_ns > threads->next_scan_ns &&
			   look_ns <= threads->next_scan_ns + threads->pause_ns / 2;

	return waits ? look_ns : threads->next_scan_ns;
}

void sf_agent_threads_scan(struct sf_agent_threads *threads, uint64_t now_ns)
{
	struct scan scan = { .threads = threads, .now_ns = now_ns };
	const bool hurried = sf_agent_threads_hurried(), expected = expects(threads);

	/* The sampler is awake now: a scan that is due soon is made at once, to save a wake-up. */
	if (now_ns + threads->pause_ns / 2 < threads->next_scan_ns && !hurried)
		return;
	if (!hurried && !expected && is_steady(threads, now_ns)) {
		threads->next_scan_ns = now_ns + threads->pause_ns;
		return;
	}
	/* First: who is made meanwhile is looked for again. */
	sf_agent_threads_met();
	threads->n_scans++;
	scan.began_cpu_ns = sf_raw_thread_cpu_ns();
	if (sf_own_threads(see, &scan))
		settle_all(threads, now_ns);
	else
		note_if_blind(threads);
	if (threads->n_scans == 1)
		threads->before_cpu_ns = sf_agent_threads_cpu_before(threads);
	arm_process(threads);
	set_pause(threads, &scan);
}
