/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The entries of this process (frozen/signal/thread_table.h) as ordinary code uses them: their memory, who claims
 * one for itself, what threads call themselves in them, and what becomes of them in a fork. The
 * sampler reads what threads leave in their entries, and never takes a lock of theirs.
 */
#ifndef SF_AGENT_THREADS_THREAD_ENTRIES_H
#define SF_AGENT_THREADS_THREAD_ENTRIES_H

#include <stdbool.h>

#include "base/error.h"
#include "frozen/signal/thread_table.h"

#define SF_AGENT_NAME 64             /* bytes of a thread's name, with the zero */

/*
 * The entries, made when first asked for and never freed: a late handler may look at them. NULL: no
 * memory. Any thread, not in a handler.
 */
struct sf_thread_entry *sf_agent_thread_table(void);

/*
 * For a new profile: nothing of the last one is in the entries, only what threads said of
 * themselves.
 */
void sf_agent_thread_table_renew(void);

/* Calls fn for every entry that is in use. */
void sf_agent_each_entry(void (*fn)(struct sf_thread_entry *entry, int32_t tid));

/* As sf_thread_table_claim, for a thread of this process. */
struct sf_thread_entry *sf_agent_claim_entry(struct sf_thread_entry *entries, int32_t tid, bool *new_ret);

/* The calling thread's: claimed if it has none, and not watched yet. NULL: no room. */
struct sf_thread_entry *sf_agent_own_entry(struct sf_error *err);
/* The calling thread's, if it has one. */
struct sf_thread_entry *sf_agent_find_own_entry(void);

/*
 * Ends a request, or a change of the clock: sets that word of the entry (request, clock_busy,
 * clock_unwanted) to 0, and wakes a thread that waits for this. Signal-safe.
 */
void sf_agent_entry_done(const struct sf_thread_entry *entry, _Atomic uint32_t *word);

/* Something is to be looked at: the sampler scans at its next turn. Any thread; posts its wake-up. */
void sf_agent_threads_hurry(void);
/* Whether that was called since the last call of this. */
bool sf_agent_threads_hurried(void);

/*
 * A thread has been made: the sampler scans as soon as what scans may cost allows. Any thread; the
 * first call posts its wake-up.
 */
void sf_agent_threads_expect(void);
/* Whether one is to be looked for, ... */
bool sf_agent_threads_expected(void);
/* ... and that it is about to be. */
void sf_agent_threads_met(void);

/* The name that a thread gave itself (SF_ENTRY_NAMED), padded with zeros up to the end. */
void sf_agent_entry_name(const struct sf_thread_entry *entry, char ret[SF_AGENT_NAME]);
void sf_agent_entry_set_name(struct sf_thread_entry *entry, const char name[SF_AGENT_NAME]);

/*
 * Around fork(), by the thread that forks, one at a time. In the child the clocks that it
 * inherited are closed, the entries of the threads that it does not have are empty, and its own, if it
 * has a name or a label or is registered, is under its new id.
 */
void sf_agent_thread_table_before_fork(void);
void sf_agent_thread_table_forked(void);       /* in the child */

/* Before the first clock that is a descriptor: a child has it, too, and finds it in its copy of the table. */
void sf_agent_thread_table_copy_to_children(void);

#endif
