/* SPDX-License-Identifier: Apache-2.0 */
/* The threads that are watched: how they come into sight, and their names. */
#include "capture/ptrace/watched.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/output.h"
#include "base/search.h"
#include "os/clock.h"

#define LIST_NS 50000000            /* threads whose number is the same are listed all the same, if one has run */
#define SCANS_PER_NAME 32

/* Outside of a scan the threads are in the order of their ids. */
static int by_tid(const void *a, const void *b)
{
	const struct sf_thread *const *left = a, *const *right = b;

	return sf_order((*left)->task.tid, (*right)->task.tid);
}

static int compare_tid(const void *key, const void *element)
{
	const struct sf_thread *const *thread = element;
	int32_t tid = *(const int32_t *)key;

	return sf_order(tid, (*thread)->task.tid);
}

static struct sf_thread *find_among(const struct sf_watch *watch, size_t n, int32_t tid)
{
	struct sf_thread **found = NULL;

	if (n)
		found = bsearch(&tid, watch->threads.items, n, sizeof(*found), compare_tid);
	return found ? *found : NULL;
}

struct sf_thread *sf_watch_find(const struct sf_watch *watch, int32_t tid)
{
	return find_among(watch, watch->threads.n, tid);
}

static void name_thread(struct sf_watch *watch, struct sf_thread *thread)
{
	thread->watched = !watch->has_names ||
			  regexec(&watch->names, thread->name, 0, NULL, 0) == 0;
}

/* Sets the fields that come from its process. */
static void set_process(const struct sf_watch *watch, struct sf_thread *thread, const struct sf_watched_process *process)
{
	thread->by_samples = watch->by_samples;
	thread->is_32_bit = process && process->is_32_bit;
	thread->only_awake = process && process->only_awake;
}

/* The thread is in the list of threads: it is known from now on. */
static void begin_thread(struct sf_watch *watch, struct sf_thread *thread, uint64_t now_ns)
{
	thread->met_scan = watch->n_scans;
	watch->last_serial++;
	thread->listed = true;
	name_thread(watch, thread);
	sf_relay_thread(watch->relay, thread, now_ns);
}

static void add_thread(struct sf_watch *watch, int32_t pid, int32_t tid, uint64_t now_ns)
{
	const struct sf_watched_process *process = sf_watch_find_process(watch, pid);
	struct sf_thread *thread;

	errno = 0;
	thread = sf_thread_create(watch->last_serial + 1, pid, tid, now_ns);
	watch->n_without_files += !thread && errno == EMFILE;
	if (!thread)
		return;
	set_process(watch, thread, process);
	if (process && (process->is_new || (process->listed && !watch->most_without_files)))
		sf_watch_begin_account(watch, process, thread);
	if (!sf_vec_push(&watch->threads, thread)) {
		sf_thread_destroy(thread);
		return;
	}
	begin_thread(watch, thread, now_ns);
}

/* New threads are put behind the first `n_known`. */
static void list_threads_of(struct sf_watch *watch, int32_t pid, size_t n_known, uint64_t now_ns)
{
	watch->ids.ids.n = 0;
	if (!sf_process_threads(pid, &watch->ids))
		return;
	for (size_t i = 0; i < watch->ids.ids.n; i++) {
		int32_t tid = watch->ids.ids.items[i];
		struct sf_thread *known = find_among(watch, n_known, tid);

		if (!known)
			add_thread(watch, pid, tid, now_ns);
		else if (known->task.pid == pid && !known->is_gone)
			known->listed = true;
	}
}

/* How many threads have a smaller id. */
static size_t count_before(const struct sf_watch *watch, int32_t tid)
{
	return sf_count_before(watch->threads.n, i, watch->threads.items[i]->task.tid < tid);
}

/* Puts it where its id belongs. */
static bool insert_thread(struct sf_watch *watch, struct sf_thread *thread)
{
	const size_t at = count_before(watch, thread->task.tid), n_behind = watch->threads.n - at;

	if (!sf_vec_push(&watch->threads, thread))
		return false;
	memmove(&watch->threads.items[at + 1], &watch->threads.items[at], n_behind * sizeof(watch->threads.items[0]));
	watch->threads.items[at] = thread;
	return true;
}

struct sf_thread *sf_watch_add_thread(struct sf_watch *watch, int32_t pid, int32_t tid, uint64_t now_ns)
{
	const struct sf_watched_process *process = sf_watch_find_process(watch, pid);
	struct sf_thread *thread;

	if (process && process->is_refused)
		return NULL;
	thread = sf_thread_create(watch->last_serial + 1, pid, tid, now_ns);
	if (!thread)
		thread = sf_thread_create_ended(watch->last_serial + 1, pid, tid, process ? process->name : "", now_ns);
	if (!thread)
		return NULL;
	set_process(watch, thread, process);
	sf_watch_begin_account(watch, process, thread);
	if (!insert_thread(watch, thread)) {
		sf_thread_destroy(thread);
		return NULL;
	}
	begin_thread(watch, thread, now_ns);
	return thread;
}

/* CPU time of all processes, as the last scan has read it. */
static uint64_t cpu_of_all(const struct sf_watch *watch)
{
	uint64_t cpu_ns = 0;

	for (size_t i = 0; i < watch->processes.n; i++)
		cpu_ns += watch->processes.items[i].last_cpu_ns;
	return cpu_ns;
}

/*
 * Names change rarely, so each is read again only now and then. Where the thread is gone, the name may be of another one with its
 * id.
 */
static void renew_name(struct sf_watch *watch, struct sf_thread *thread, uint64_t now_ns)
{
	char name[SF_TASK_NAME];
	struct sf_task_run run;

	if (!sf_task_name(thread->task.pid, thread->task.tid, name) || strcmp(name, thread->name) == 0 ||
	    !sf_task_run(&thread->task, &run))
		return;
	memcpy(thread->name, name, sizeof(name));
	name_thread(watch, thread);
	sf_relay_thread(watch->relay, thread, now_ns);
}

/*
 * The name of each thread is read in turn. A thread may name itself after it was met: so its name is read at its 1st, 2nd,
 * 4th, 8th and 16th scan, too.
 */
static bool is_name_due(const struct sf_watch *watch, const struct sf_thread *thread)
{
	const uint64_t age = watch->n_scans - thread->met_scan;

	return (watch->n_scans + thread->serial) % SCANS_PER_NAME == 0 || (age && age < SCANS_PER_NAME && !(age & (age - 1)));
}

void sf_watch_renew_names(struct sf_watch *watch, uint64_t now_ns)
{
	const uint64_t cpu_ns = cpu_of_all(watch);

	if (cpu_ns != watch->named_cpu_ns)
		watch->ran_scan = watch->n_scans;
	watch->named_cpu_ns = cpu_ns;
	if (watch->n_scans - watch->ran_scan > SCANS_PER_NAME) /* only a thread that runs can rename itself or another one */
		return;
	for (size_t i = 0; i < watch->threads.n; i++) {
		struct sf_thread *thread = watch->threads.items[i];

		if (!thread->is_refused && is_name_due(watch, thread))
			renew_name(watch, thread, now_ns);
	}
}

void sf_watch_rename(struct sf_watch *watch, int32_t tid, const char *name, uint64_t now_ns)
{
	struct sf_thread *thread = sf_watch_find(watch, tid);

	if (!thread || thread->is_refused || strncmp(name, thread->name, sizeof(thread->name) - 1) == 0)
		return;
	memset(thread->name, 0, sizeof(thread->name));
	memccpy(thread->name, name, 0, sizeof(thread->name) - 1);
	sf_sanitize(thread->name);
	name_thread(watch, thread);
	sf_relay_thread(watch->relay, thread, now_ns);
}

/* Threads without a sample are to end before those with one: sf_use_shares_move(). */
static void end_unlisted(struct sf_watch *watch, bool with_samples, uint64_t now_ns)
{
	for (size_t i = watch->threads.n; i-- > 0;) {
		struct sf_thread *thread = watch->threads.items[i];

		if (thread->ran == with_samples && !thread->listed && !sf_watch_keeps(watch, &thread->ended))
			sf_watch_end_thread(watch, i, now_ns);
	}
}

/* Of threads that are known by their samples. */
static void end_gone(struct sf_watch *watch, uint64_t now_ns)
{
	for (size_t i = watch->threads.n; i-- > 0;) {
		const struct sf_task *task = &watch->threads.items[i]->task;

		if (watch->threads.items[i]->is_refused || !sf_task_lives(task->pid, task->tid))
			sf_watch_end_thread(watch, i, now_ns);
	}
}

/*
 * A process that ran already is counted from when its threads are: what they used between the look at the process and the
 * looks at them is in no thread's account.
 */
static void count_from_its_threads_on(struct sf_watched_process *process)
{
	if (!process->listed && !process->is_new)
		(void)sf_process_cpu(process->pid, &process->cpu_ns);
	process->listed = true;
}

static void list_all(struct sf_watch *watch, uint64_t now_ns)
{
	size_t n_known = watch->threads.n;

	watch->listed_cpu_ns = cpu_of_all(watch);
	if (sf_watch_is_sampled(watch)) {
		end_gone(watch, now_ns);
		return;
	}
	watch->n_without_files = 0;
	for (size_t i = 0; i < n_known; i++)
		watch->threads.items[i]->listed = false;
	for (size_t i = 0; i < watch->processes.n; i++) {
		struct sf_watched_process *process = &watch->processes.items[i];

		if (process->is_refused)
			continue;
		list_threads_of(watch, process->pid, n_known, now_ns);
		count_from_its_threads_on(process);
	}
	if (watch->threads.n > n_known)
		qsort(watch->threads.items, watch->threads.n, sizeof(watch->threads.items[0]), by_tid);
	end_unlisted(watch, false, now_ns);
	end_unlisted(watch, true, now_ns);
	if (watch->n_without_files > watch->most_without_files)
		watch->most_without_files = watch->n_without_files;
	watch->next_list_ns = now_ns + LIST_NS;
}

/* A thread is started by one that runs: where no CPU time was used there is no new thread. */
static bool is_to_list(const struct sf_watch *watch, uint64_t now_ns)
{
	size_t n_threads = 0;

	for (size_t i = 0; i < watch->processes.n; i++)
		n_threads += watch->processes.items[i].is_refused ? 0 : watch->processes.items[i].program.n_threads;
	return n_threads != watch->threads.n || (now_ns >= watch->next_list_ns && cpu_of_all(watch) != watch->listed_cpu_ns);
}

void sf_watch_list_threads(struct sf_watch *watch, uint64_t now_ns)
{
	if (is_to_list(watch, now_ns))
		list_all(watch, now_ns);
}

bool sf_watch_look_to_hold(struct sf_watch *watch, struct sf_thread *thread, uint64_t now_ns)
{
	if (thread->exited_ns)
		return false;
	thread->looked_ns = sf_now_ns();
	sf_watch_extend_sleep(watch, thread, now_ns);
	if (!sf_thread_measure_and_look(thread, now_ns)) {
		sf_watch_scan_soon(watch);
		return false;
	}
	sf_thread_measure_use(thread);
	return true;
}

void sf_watch_take_over(const struct sf_watch *watch, int32_t pid, uint64_t exec_ns)
{
	struct sf_thread *first = sf_watch_find(watch, pid), *other = NULL;
	size_t n = 0;

	if (!first || !first->exited_ns || first->exited_ns > exec_ns)
		return;
	for (size_t i = 0; i < watch->threads.n; i++) {
		struct sf_thread *thread = watch->threads.items[i];

		if (thread == first || thread->task.pid != pid || thread->exited_ns)
			continue;
		other = thread;
		n++;
	}
	sf_thread_take_over(first, n == 1 ? other : NULL);
}
