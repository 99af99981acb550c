/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The memory of the thread table, and the calls by which a thread claims and names its own entry.
 * Threads of the program call this, and the sampler reads the result without a lock.
 */
#include "agent/threads/thread_entries.h"

#include <limits.h>
#include <string.h>
#include <sys/mman.h>

#include "agent/clocks/clocks.h"
#include "agent/libc/fork_memory.h"
#include "frozen/child.h"
#include "frozen/signal/event.h"
#include "frozen/signal/handler.h"
#include "frozen/raw.h"

#define SWEEP_AFTER 1024             /* entries that threads claimed, and perhaps never gave back */
#define OWN_FLAGS (SF_ENTRY_REGISTERED | SF_ENTRY_NAMED)

/* --- their memory --- */

#define NAME_WORDS (SF_AGENT_NAME / sizeof(uint64_t))

/* In words, since a thread may change its name while the sampler reads it. */
struct names {
	_Atomic uint64_t of[SF_THREAD_TABLE_SIZE][NAME_WORDS];
};

static struct sf_thread_entry *_Atomic all_entries;
static struct names *_Atomic all_names;
static _Atomic uint32_t n_claimed;
static _Atomic bool hurry, expected;
static _Atomic bool is_copied; /* to forked children, which else have zeroes */

/* The name, the label and the flags of the thread that forks, for the child. */
SF_CHILD_DATA static struct {
	uint32_t flags, label;
	char name[SF_AGENT_NAME];
} forking;

static int32_t own_tid(void)
{
	return (int32_t)sf_raw0(SYS_gettid);
}

/* Two may come at once: the second one's memory is given back. */
static void *map_once(void *_Atomic *where, size_t size)
{
	void *memory = atomic_load(where), *none = NULL;

	if (memory)
		return memory;
	memory = sf_map_own(size, SF_COPIED);
	if (!memory)
		return NULL;
	if (!sf_set_in_child(memory, size, SF_WIPED))
		atomic_store(&is_copied, true);
	if (atomic_compare_exchange_strong(where, &none, memory))
		return memory;
	munmap(memory, size);
	return none;
}

struct sf_thread_entry *sf_agent_thread_table(void)
{
	if (!map_once((void *_Atomic *)&all_names, sizeof(struct names)))
		return NULL;
	return map_once((void *_Atomic *)&all_entries, SF_THREAD_TABLE_SIZE * sizeof(struct sf_thread_entry));
}

/* --- the used part --- */

/*
 * The table has 3 MB. Flags of used blocks keep the rest of it from being read: each page that was read once is copied at
 * every fork() of the program.
 */
#define BLOCK 64
#define N_BLOCKS (SF_THREAD_TABLE_SIZE / BLOCK)

SF_CHILD_DATA static _Atomic bool used[N_BLOCKS];

_Static_assert(BLOCK >= SF_THREAD_WINDOW, "an entry is in its thread's block, or in the next one");

struct sf_thread_entry *sf_agent_claim_entry(struct sf_thread_entry *entries, int32_t tid, bool *new_ret)
{
	const uint32_t block = ((uint32_t)tid & (SF_THREAD_TABLE_SIZE - 1)) / BLOCK;

	atomic_store(&used[block], true);
	atomic_store(&used[(block + 1) % N_BLOCKS], true);
	return sf_thread_table_claim(entries, tid, new_ret);
}

/* Calls fn for the entries of threads. */
static void each(struct sf_thread_entry *entries, void (*fn)(struct sf_thread_entry *entry, int32_t tid))
{
	for (uint32_t i = 0; i < SF_THREAD_TABLE_SIZE; i++) {
		int32_t tid;

		if (i % BLOCK == 0 && !atomic_load(&used[i / BLOCK])) {
			i += BLOCK - 1;
			continue;
		}
		tid = atomic_load(&entries[i].tid);
		if (tid > 0)
			fn(&entries[i], tid);
	}
}

/* --- a new profile --- */

static bool lives(int32_t tid)
{
	return sf_raw3(SYS_tgkill, sf_raw0(SYS_getpid), tid, 0) == 0;
}

static void renew(struct sf_thread_entry *entry, int32_t tid)
{
	if (!lives(tid)) {
		sf_thread_table_leave(entry);
		return;
	}
	atomic_store(&entry->flags,
		     (atomic_load(&entry->flags) & OWN_FLAGS) | SF_ENTRY_UNWATCHED);
	atomic_store(&entry->serial, 0);
	atomic_store(&entry->accounted_ns, 0);
	atomic_store(&entry->run_delay_ns, 0);
	atomic_store(&entry->n_samples, 0);
	atomic_store(&entry->request, 0);
	atomic_store(&entry->clock_busy, 0);
	atomic_store(&entry->clock_unwanted, 0);
	atomic_store(&entry->perf_fd, 0);
	atomic_store(&entry->api_ns, 0);
	atomic_store(&entry->event_amount, 0);
}

void sf_agent_each_entry(void (*fn)(struct sf_thread_entry *entry, int32_t tid))
{
	struct sf_thread_entry *entries = atomic_load(&all_entries);

	if (entries)
		each(entries, fn);
}

void sf_agent_thread_table_renew(void)
{
	struct sf_thread_entry *entries = sf_agent_thread_table();

	if (entries)
		each(entries, renew);
}

/* Entries of threads that claimed one and ended before the sampler, if there is one, took note. */
static void sweep(struct sf_thread_entry *entry, int32_t tid)
{
	const bool watched = atomic_load(&entry->serial) && !(atomic_load(&entry->flags) & SF_ENTRY_UNWATCHED);

	if (watched || lives(tid))
		return;
	sf_event_lose(&sf_handler.output, entry);
	sf_thread_table_leave(entry);
}

static void sweep_all(struct sf_thread_entry *entries)
{
	atomic_store(&n_claimed, 0);
	each(entries, sweep);
}

/*
 * All places that the thread may have may be those of threads that ended: its id may come back to them before so many
 * threads have claimed that it is time to sweep.
 */
static struct sf_thread_entry *claim_own(struct sf_thread_entry *entries, bool *new_ret)
{
	struct sf_thread_entry *entry = sf_agent_claim_entry(entries, own_tid(), new_ret);

	if (entry || !atomic_load(&n_claimed)) /* none has come since the last time: a full table is not swept at each call */
		return entry;
	sweep_all(entries);
	return sf_agent_claim_entry(entries, own_tid(), new_ret);
}

struct sf_thread_entry *sf_agent_own_entry(struct sf_error *err)
{
	struct sf_thread_entry *entries = sf_agent_thread_table(), *entry = NULL;
	bool is_new = false;

	if (entries)
		entry = claim_own(entries, &is_new);
	if (is_new) /* no samples before the sampler has given it its number */
		atomic_fetch_or(&entry->flags, SF_ENTRY_UNWATCHED);
	if (is_new && atomic_fetch_add(&n_claimed, 1) >= SWEEP_AFTER)
		sweep_all(entries);
	if (!entry)
		sf_fail(err, SF_E_UNSUPPORTED, "there is no room for more threads (%d)", SF_THREAD_TABLE_SIZE);
	return entry;
}

struct sf_thread_entry *sf_agent_find_own_entry(void)
{
	struct sf_thread_entry *entries = atomic_load(&all_entries);

	return entries ? sf_thread_table_find(entries, own_tid()) : NULL;
}

void sf_agent_entry_done(const struct sf_thread_entry *entry, _Atomic uint32_t *word)
{
	atomic_store(word, 0);
	if (atomic_load(&entry->flags) & SF_ENTRY_LEAVING)
		sf_raw_futex_wake(word, INT_MAX);
}

void sf_agent_threads_hurry(void)
{
	atomic_store(&hurry, true);
	sf_wake_up_post(&sf_handler.link.wake_up);
}

bool sf_agent_threads_hurried(void)
{
	return atomic_load_explicit(&hurry, memory_order_relaxed) && atomic_exchange(&hurry, false);
}

/* Wakes the sampler once for all threads that are made before the next scan. */
void sf_agent_threads_expect(void)
{
	if (!atomic_load_explicit(&expected, memory_order_relaxed) &&
	    !atomic_exchange(&expected, true))
		sf_wake_up_post(&sf_handler.link.wake_up);
}

bool sf_agent_threads_expected(void)
{
	return atomic_load_explicit(&expected, memory_order_relaxed);
}

void sf_agent_threads_met(void)
{
	atomic_store(&expected, false);
}

/* --- names --- */

static _Atomic uint64_t *name_of(const struct sf_thread_entry *entry)
{
	return atomic_load(&all_names)->of[entry - atomic_load(&all_entries)];
}

void sf_agent_entry_set_name(struct sf_thread_entry *entry, const char name[SF_AGENT_NAME])
{
	_Atomic uint64_t *words = name_of(entry);
	uint64_t word;

	for (unsigned i = 0; i < NAME_WORDS; i++) {
		memcpy(&word, name + i * sizeof(word), sizeof(word));
		atomic_store_explicit(&words[i], word, memory_order_relaxed);
	}
}

/* The thread may be changing it: then SF_ENTRY_RENAMED comes again. */
void sf_agent_entry_name(const struct sf_thread_entry *entry, char ret[SF_AGENT_NAME])
{
	_Atomic uint64_t *words = name_of(entry);
	uint64_t word;

	for (unsigned i = 0; i < NAME_WORDS; i++) {
		word = atomic_load_explicit(&words[i], memory_order_relaxed);
		memcpy(ret + i * sizeof(word), &word, sizeof(word));
	}
	ret[SF_AGENT_NAME - 1] = 0;
}

/* --- forked children --- */

/* A fork in between has zeroes, and takes them for a table. */
void sf_agent_thread_table_copy_to_children(void)
{
	struct sf_thread_entry *entries = atomic_load(&all_entries);

	if (atomic_exchange(&is_copied, true) || !entries)
		return;
	sf_set_in_child(entries, SF_THREAD_TABLE_SIZE * sizeof(*entries), SF_COPIED);
}

void sf_agent_thread_table_before_fork(void)
{
	const struct sf_thread_entry *own = sf_agent_find_own_entry();

	forking.flags = own ? atomic_load(&own->flags) & OWN_FLAGS : 0;
	forking.label = own ? atomic_load(&own->label) : 0;
	if (forking.flags & SF_ENTRY_NAMED)
		sf_agent_entry_name(own, forking.name);
}

static void move_in(struct sf_thread_entry *entries)
{
	bool is_new;
	struct sf_thread_entry *entry = sf_agent_claim_entry(entries, own_tid(), &is_new);

	if (!entry)
		return;
	atomic_store(&entry->flags, forking.flags);
	atomic_store(&entry->label, forking.label);
	if (forking.flags & SF_ENTRY_NAMED)
		sf_agent_entry_set_name(entry, forking.name);
}

static void forget_clock(struct sf_thread_entry *entry, int32_t tid)
{
	(void)tid;
	sf_agent_clock_forked(entry);
}

/*
 * The first look at a page, and the first change of one, is a page fault: a thread that has said nothing of itself
 * needs no entry.
 */
SF_CHILD_CODE void sf_agent_thread_table_forked(void)
{
	struct sf_thread_entry *entries = atomic_load(&all_entries);

	sf_agent_clock_process_forked();
	if (!entries)
		return;
	if (atomic_load(&is_copied)) {
		each(entries, forget_clock);
		madvise(entries, SF_THREAD_TABLE_SIZE * sizeof(*entries), MADV_DONTNEED);
	}
	for (uint32_t i = 0; i < N_BLOCKS; i++)
		atomic_store(&used[i], false);
	if (forking.flags || forking.label)
		move_in(entries);
}
