/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The list of the watched threads of this process. A scan of /proc/self/task finds them (scan.c), or they register
 * themselves (threads/thread_register.c). Each thread has an entry (threads/thread_entries.h) for the signal handler,
 * and an entry here for ordinary code.
 *
 * The sampler's thread owns the list. The sampler must not wait for a lock that a held thread may own. So
 * nothing here allocates after the creation: the list has room for as many threads as there are
 * entries, in memory that is not touched before it is used. There is one exception: regexec() with
 * threads=, for a new thread. A thread that is held meanwhile with malloc's lock leaves its
 * slot after its time-out.
 *
 * Entries stay when a profile ends, with the names and labels that threads gave themselves, for the next
 * profile.
 */
#ifndef SF_AGENT_SAMPLER_THREADS_H
#define SF_AGENT_SAMPLER_THREADS_H

#include <regex.h>
#include <stdbool.h>
#include <stdint.h>

#include "agent/clocks/clocks.h"
#include "agent/options.h"
#include "agent/sampler/blocked_sample.h"
#include "agent/threads/thread_entries.h"
#include "base/error.h"
#include "base/use_shares.h"
#include "frozen/signal/thread_table.h"

struct sf_agent_thread {
	struct sf_thread_entry *entry;
	int32_t  tid;
	uint32_t serial;
	char     name[SF_AGENT_NAME];
	bool     watched;            /* and written to the outbox */
	bool     is_written;         /* its THREAD record found room */
	bool     sampled_asleep;     /* its present sleep has a sample, which an AGAIN record can extend */
	bool     may_change_asleep;  /* ... whose walk may be another one than with ... */
	const void *asleep_map;      /* ... this code map and ... */
	uint64_t asleep_handles;     /* ... these handles */
	uint32_t n_put_off;          /* samples that wait until its handles, or its code, are there */
	bool     matches;            /* its name matches threads= */
	bool     replaced;           /* another thread has its id now */
	bool     blocked_us;         /* it blocked our signal at the last poll without a new sample */
	uint8_t  n_mute_looks;       /* how often its mask was looked at */
	uint32_t first_scan, last_scan; /* numbers of scans in which it was there */
	uint64_t first_cpu_ns;       /* its clock when it was found; advances while paused */
	uint64_t cpu_ns;             /* its clock at the last look, or when the pause began */
	uint64_t looked_ns;          /* when that was */
	uint64_t ticked_cpu_ns;      /* its clock at the sampler's last tick */
	int64_t  asleep_ns;          /* elapsed asleep, for its next sample asleep; below 0: owed */
	uint64_t sleeps_since_ns;    /* its last sample asleep */
	uint64_t wait_ns;            /* by schedstat, at the last look */
	uint64_t n_samples_before;   /* of its entry, at the last poll: unchanged for a deaf thread */
	struct sf_timer_coverage coverage;
	uint64_t clock_spared_ns;    /* until when its clock is set only if it must be */
};

static inline bool sf_agent_thread_is_deaf(const struct sf_agent_thread *thread)
{
	return atomic_load(&thread->entry->flags) & SF_ENTRY_DEAF;
}

struct sf_agent_threads {
	const struct sf_agent_options *options;
	const struct sf_agent_clock_kind *clock; /* NULL: wall only */
	const struct sf_agent_clock_kind *between; /* for threads that run between ticks, or NULL */
	uint64_t tick_ns;                     /* of the kernel */
	struct sf_agent_thread *all;          /* SF_THREAD_TABLE_SIZE, by mmap; in no order */
	uint32_t n;
	_Atomic uint32_t n_scans;             /* begun; others may read it */
	uint32_t *places;                     /* by entry: place in `all` + 1, 0: none */
	struct sf_thread_entry *entries;
	struct sf_workspace *workspace;       /* the sampler's, not owned */
	int32_t  own[3];                      /* unwatched: sampler, service thread, listener; 0: none */
	uint64_t own_ended_cpu_ns;            /* of those that have ended and will be followed by others */
	regex_t  names;
	bool     has_names;
	uint64_t next_scan_ns, pause_ns;      /* until the next scan */
	uint64_t least_scan_ns;               /* what scans may cost allows none before */
	uint64_t full_scan_ns, n_counted;     /* ... at the latest, if as many threads are there as
					       * were */
	uint64_t before_cpu_ns;               /* sf_agent_threads_cpu_before() at the first scan ... */
	uint64_t paused_cpu_ns;               /* ... and while paused */
	uint64_t ended_cpu_ns;                /* of threads that were watched and no longer are */
	bool     noted_blind;                 /* the note that new threads are not found is written */
	struct sf_use_shares little;          /* of threads that use little CPU time (base/use_shares.h) */
	struct sf_sleep_budget sleep_budget;  /* of samples of them while they sleep */
};

/* Sets sf_handler.link.entries. The sampler sets `clock` when it starts. */
struct sf_agent_threads *sf_agent_threads_create(const struct sf_agent_options *options, struct sf_workspace *workspace,
						 struct sf_error *err);
void sf_agent_threads_destroy(struct sf_agent_threads *threads); /* takes NULL; ended before */

/*
 * Scans for new and ended threads, if a scan is due: writes their records, arms and disarms clocks.
 * Scans take at most 1 % of a CPU. The first call scans at once.
 */
void sf_agent_threads_scan(struct sf_agent_threads *threads, uint64_t now_ns);

/*
 * When the next scan is due. The sampler polls threads at look_ns. A scan is delayed a little until
 * that poll, so that the sampler wakes once for both.
 */
uint64_t sf_agent_threads_scan_ns(struct sf_agent_threads *threads, uint64_t look_ns);

/* Disarms all clocks. */
void sf_agent_threads_disarm(struct sf_agent_threads *threads);

/*
 * Ends the watch of all threads, with THREAD_END for each. Records CPU time that is in no thread's
 * account as a loss (unseen).
 */
void sf_agent_threads_end(struct sf_agent_threads *threads, uint64_t now_ns);

/*
 * A pause begins, or ends: CPU time of the pause is in no thread's account. The handler is off from
 * before the begin until after the end.
 */
void sf_agent_threads_pause(struct sf_agent_threads *threads);
void sf_agent_threads_resume(struct sf_agent_threads *threads, uint64_t now_ns);

/*
 * CPU time of the process that is in no account of a thread, but for that of the agent's own threads. At the first scan threads are
 * taken in one after the other: what each has used since is in its account.
 */
uint64_t sf_agent_threads_cpu_before(const struct sf_agent_threads *threads);

#endif
