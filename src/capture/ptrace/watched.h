/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The parts of a watch (watch.h), for its own files only: its processes (watched_processes.c), its threads
 * (watched_threads.c) and their accounts (watched_account.c).
 */
#ifndef SF_CAPTURE_PTRACE_WATCHED_H
#define SF_CAPTURE_PTRACE_WATCHED_H

#include "capture/ptrace/watch.h"

/* --- processes --- */

/* Adds a process that the user chose. False: no memory. */
bool sf_watch_add_chosen(struct sf_watch *watch, int32_t pid);

/* Looks at each process, passes new programs to the relay, and ends the processes that are gone. */
void sf_watch_look_at_processes(struct sf_watch *watch, uint64_t now_ns);

/* Ends a process, its threads first. The last process takes its place. */
void sf_watch_end_process(struct sf_watch *watch, size_t index, uint64_t now_ns);

/* After all that have ended together: the CPU time of the children that were seen is known then. */
void sf_watch_lose_children(struct sf_watch *watch);

/* --- threads --- */

/* Lists the threads of all processes, if their number has changed or it is time, and ends those that are gone. */
void sf_watch_list_threads(struct sf_watch *watch, uint64_t now_ns);

/* Reads the names of some of the threads again: names change rarely. */
void sf_watch_renew_names(struct sf_watch *watch, uint64_t now_ns);

/* --- their accounts --- */

/*
 * The CPU time of a thread from before it came into sight counts, too, unless that is known by samples. Of the first
 * thread of a process all counts but what the process had used when its own account began.
 */
void sf_watch_begin_account(const struct sf_watch *watch, const struct sf_watched_process *process, struct sf_thread *thread);
/* The process fits the filter again. What it has used while it did not is in no account: its own begins now, and those of its threads. */
void sf_watch_begin_again(const struct sf_watch *watch, struct sf_watched_process *process);

/* --- all --- */

/* The process with this id, or NULL. Valid until a process is added or ended. */
static inline struct sf_watched_process *sf_watch_find_process(const struct sf_watch *watch, int32_t pid)
{
	for (size_t i = 0; i < watch->processes.n; i++) {
		if (watch->processes.items[i].pid == pid)
			return &watch->processes.items[i];
	}
	return NULL;
}

/* Whether what is gone is kept until the next scan; *ended: an earlier scan has found it to be gone. */
static inline bool sf_watch_keeps(struct sf_watch *watch, bool *ended)
{
	const bool keeps = watch->keeps_ended && !*ended;

	*ended = true;
	watch->has_kept |= keeps;
	return keeps;
}

#endif
