/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the processes and threads of a target by scans, and accounts for CPU time that no thread's account holds. */
#include "capture/ptrace/watch.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/output.h"
#include "capture/ptrace/unseen.h"
#include "frozen/raw.h"
#include "os/cgroup.h"
#include "os/process.h"

#define SCAN_SHARE 100              /* a scan is followed by this many times its CPU time of pause */
#define SCAN_MIN_NS 10000000
#define LIST_NS 50000000            /* threads whose number is the same are listed all the same */
#define CHILDREN_MIN_NS 2000000     /* short-lived ones are what `make` and shells are made of */
#define SCANS_PER_NAME 32
#define REST_TICKS 4                /* after a thread's last sample on a CPU, which that sample may stand for, too */
#define MAX_DEPTH 64                /* ancestors of a process that are looked at */

/* Whether it fits the filter, with this name. What cannot be read of it any more is as it was, or as its parent's is. */
static void decide(const struct sf_watch *watch, struct sf_watched_process *process, const char *name)
{
	const struct sf_process_filter *filter = watch->options->filter;
	const uint32_t user = filter ? sf_process_user(process->pid) : UINT32_MAX;

	if (user != UINT32_MAX)
		process->user = user;
	process->is_refused = !sf_process_filter_fits(filter, name, process->user);
	for (size_t i = 0; i < watch->threads.n; i++) {
		if (watch->threads.items[i]->task.pid == process->pid)
			watch->threads.items[i]->is_refused = process->is_refused;
	}
}

/* The same, with the name that the system knows. */
static void decide_by_name(const struct sf_watch *watch, struct sf_watched_process *process)
{
	char name[SF_TASK_NAME];

	if (!watch->options->filter)
		return;
	if (!sf_task_name(process->pid, process->pid, name))
		memcpy(name, process->name, sizeof(name));
	decide(watch, process, name);
}

static bool has_chosen_ancestor(const struct sf_capture_options *options, int32_t pid)
{
	for (int depth = 0; depth < MAX_DEPTH && (pid = sf_process_parent(pid)) > 1; depth++) {
		if (sf_capture_is_chosen(options, pid))
			return true;
	}
	return false;
}

static bool add_chosen(struct sf_watch *watch, int32_t pid)
{
	struct sf_watched_process process = { .pid = pid, .first = true };

	if (watch->options->n_more)
		process.first = !has_chosen_ancestor(watch->options, pid);
	if (process.first)
		process.children_cpu_ns = sf_process_children_cpu(pid);
	watch->n_first += process.first;
	decide_by_name(watch, &process);
	return sf_vec_push(&watch->processes, process);
}

bool sf_watch_open(struct sf_watch *watch, const struct sf_capture_options *options,
		   struct sf_error *err)
{
	watch->options = options;
	if (options->threads) {
		if (regcomp(&watch->names, options->threads, REG_EXTENDED | REG_NOSUB) != 0)
			return sf_fail(err, SF_E_INPUT, "'%.100s' is not a regular expression",
				       options->threads);
		watch->has_names = true;
	}
	if (options->cgroup) {
		const int fd = sf_cgroup_open(options->cgroup, err);

		if (fd < 0)
			return false;
		watch->cgroup = fd;
	}
	for (size_t i = 0; i < sf_capture_n_pids(options); i++) {
		if (!add_chosen(watch, sf_capture_pid(options, i)))
			return sf_fail_memory(err);
	}
	return true;
}

void sf_watch_close(struct sf_watch *watch)
{
	if (watch->has_names)
		regfree(&watch->names);
	if (watch->cgroup)
		close(watch->cgroup);
	sf_vec_deinit(&watch->processes);
	sf_vec_deinit(&watch->threads);
	sf_vec_deinit(&watch->ids.ids);
}

bool sf_watch_is_sampled(const struct sf_watch *watch)
{
	return watch->options->all && !watch->options->blocked_rate_mhz;
}

bool sf_watch_knows_by_samples(const struct sf_watch *watch, const struct sf_thread *thread)
{
	return sf_watch_is_sampled(watch) || thread->only_awake || thread->by_samples;
}

/* Outside of a scan the threads are in the order of their ids. */
static int by_tid(const void *a, const void *b)
{
	const struct sf_thread *const *left = a, *const *right = b;

	return ((*left)->task.tid > (*right)->task.tid) - ((*left)->task.tid < (*right)->task.tid);
}

static int compare_tid(const void *key, const void *element)
{
	const struct sf_thread *const *thread = element;
	int32_t tid = *(const int32_t *)key;

	return (tid > (*thread)->task.tid) - (tid < (*thread)->task.tid);
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

static struct sf_watched_process *find_process(const struct sf_watch *watch, int32_t pid)
{
	for (size_t i = 0; i < watch->processes.n; i++) {
		if (watch->processes.items[i].pid == pid)
			return &watch->processes.items[i];
	}
	return NULL;
}

static bool is_only_awake(int32_t pid)
{
	return pid == (int32_t)getpid() || sf_process_is_kernel(pid);
}

static void count_32_bit(struct sf_watch *watch, int32_t pid)
{
	if (watch->n_32_bit++)
		return;
	watch->first_32_bit = pid;
	sf_process_name(pid, watch->name_32_bit, sizeof(watch->name_32_bit));
}

/* Takes note of the program in it, which is new. Its threads are those of the program. */
static void set_program(struct sf_watch *watch, struct sf_watched_process *process, const struct sf_program *program)
{
	const bool was = process->is_32_bit;

	process->program = *program;
	process->is_32_bit = sf_process_is_32_bit(process->pid);
	process->only_awake = watch->options->all && is_only_awake(process->pid);
	decide_by_name(watch, process);
	if (process->is_32_bit && !was && !process->is_refused)
		count_32_bit(watch, process->pid);
	for (size_t i = 0; i < watch->threads.n; i++) {
		if (watch->threads.items[i]->task.pid == process->pid)
			watch->threads.items[i]->is_32_bit = process->is_32_bit;
	}
}

/* The ticks that were due in so much CPU time. */
/*
 * Whether a thread's last sample on a CPU may stand for its CPU time since, too. Samples come at moments of their own, so what a
 * thread did before a sample tells as much of what it did after it. Not of more than what its samples stand for already.
 */
static bool is_short_rest(const struct sf_thread *thread, const struct sf_weight *rest)
{
	const uint64_t counted_ns = thread->run.cpu_ns - thread->first_cpu_ns;

	if (!thread->ran || thread->is_32_bit)
		return false;
	return rest->ticks <= REST_TICKS || (!thread->beyond_ns && 2 * rest->cpu_ns <= counted_ns);
}

/* Why there is no further sample of a thread. */
static enum sf_loss cause_of_end(const struct sf_watch *watch)
{
	return watch->over ? SF_LOSS_REST : SF_LOSS_GONE;
}

/* Why the thread's time since its last sample has none. */
static enum sf_loss cause_of_rest(const struct sf_watch *watch, const struct sf_thread *thread)
{
	if (thread->is_32_bit)
		return SF_LOSS_NARROW;
	if (thread->beyond_ns)
		return SF_LOSS_KERNEL;
	return cause_of_end(watch);
}

void sf_watch_extend_sleep(struct sf_watch *watch, struct sf_thread *thread, uint64_t now_ns)
{
	const uint64_t rate_mhz = watch->options->blocked_rate_mhz;
	struct sf_weight weight;

	if (!rate_mhz || !thread->watched || !thread->sampled || sf_thread_awake(thread) || thread->asleep_ns <= 0)
		return;
	weight = sf_thread_take_asleep(thread, UINT64_C(1000000000000) / rate_mhz);
	sf_relay_again(watch->relay, thread, now_ns, &weight);
}

/* A sleep of which the kernel told lasts for as long as is known, where its end was not told. */
static void end_told_sleep(struct sf_watch *watch, struct sf_thread *thread)
{
	const struct sf_sleep *sleep = &thread->sleep;
	const uint64_t end_ns = sleep->woken_ns ? sleep->woken_ns : watch->told_until_ns, given_ns = thread->slept_ns - sleep->before_ns;
	struct sf_weight weight;

	if (!thread->watched || !thread->is_told || !sleep->has_sample || end_ns <= sleep->start_ns + given_ns)
		return;
	weight = sf_thread_take_sleep(thread, end_ns - sleep->start_ns - given_ns, UINT64_C(1000000000000) / watch->options->blocked_rate_mhz);
	sf_relay_again(watch->relay, thread, end_ns, &weight);
}

static void forget_rest(struct sf_thread *thread)
{
	thread->first_cpu_ns += thread->cpu_ns;
	thread->cpu_ns = 0;
}

void sf_watch_end_thread(struct sf_watch *watch, size_t index, uint64_t now_ns)
{
	struct sf_thread *thread = watch->threads.items[index];
	struct sf_watched_process *process = find_process(watch, thread->task.pid);

	sf_thread_settle(thread, now_ns, false);
	/*
	 * It slept on from its last sample. On a machine whose CPUs are busy that may be all that there is of a short command: its
	 * next look is put off, or waits for a CPU.
	 */
	if (thread->sampled && !sf_thread_awake(thread))
		sf_thread_sleep_until(thread, now_ns);
	end_told_sleep(watch, thread);
	sf_watch_extend_sleep(watch, thread, now_ns);
	thread->cpu_ns += thread->beyond_ns;
	if (thread->is_refused || sf_watch_knows_by_samples(watch, thread))
		forget_rest(thread);
	sf_thread_pay(thread);
	if (process)
		process->threads_cpu_ns += thread->run.cpu_ns - thread->first_cpu_ns;
	if (thread->watched && thread->cpu_ns) {
		/* The thread has run since its last sample. No sample stands for that time, or a share of that one does. */
		struct sf_weight weight = {
			.cpu_ns = thread->cpu_ns,
			.wall_ns = thread->awake_ns > 0 ? (uint64_t)thread->awake_ns : 0,
			.ticks = sf_unseen_ticks(watch, thread->cpu_ns),
		};

		if ((thread->asked || thread->ran) && !weight.ticks)
			weight.ticks = 1;
		if (is_short_rest(thread, &weight))
			sf_relay_again(watch->relay, thread, now_ns, &weight);
		else
			sf_relay_loss(watch->relay, thread, cause_of_rest(watch, thread), &weight);
	}
	memmove(&watch->threads.items[index], &watch->threads.items[index + 1],
		(--watch->threads.n - index) * sizeof(watch->threads.items[0]));
	sf_relay_thread_end(watch->relay, thread, now_ns, cause_of_end(watch));
}

static void name_thread(struct sf_watch *watch, struct sf_thread *thread)
{
	thread->watched = !watch->has_names ||
			  regexec(&watch->names, thread->name, 0, NULL, 0) == 0;
}

/* What is known of its process. */
static void set_process(const struct sf_watch *watch, struct sf_thread *thread, const struct sf_watched_process *process)
{
	thread->by_samples = watch->by_samples;
	thread->is_32_bit = process && process->is_32_bit;
	thread->only_awake = process && process->only_awake;
}

/* The thread is in the list of threads: it is known from now on. */
static void begin_thread(struct sf_watch *watch, struct sf_thread *thread, uint64_t now_ns)
{
	watch->last_serial++;
	thread->listed = true;
	name_thread(watch, thread);
	sf_relay_thread(watch->relay, thread, now_ns);
}

/* Its whole CPU time counts, unless that is known by samples. */
static void begin_account(const struct sf_watch *watch, struct sf_thread *thread)
{
	if (sf_watch_knows_by_samples(watch, thread))
		return;
	thread->cpu_ns = thread->first_cpu_ns;
	thread->awake_ns = (int64_t)thread->first_cpu_ns;
	thread->first_cpu_ns = 0;
}

static void add_thread(struct sf_watch *watch, int32_t pid, int32_t tid, uint64_t now_ns)
{
	const struct sf_watched_process *process = find_process(watch, pid);
	struct sf_thread *thread;

	errno = 0;
	thread = sf_thread_create(watch->last_serial + 1, pid, tid, now_ns);
	watch->n_without_files += !thread && errno == EMFILE;
	if (!thread)
		return;
	set_process(watch, thread, process);
	if (process && process->met)
		begin_account(watch, thread);
	if (!sf_vec_push(&watch->threads, thread)) {
		sf_thread_destroy(thread);
		return;
	}
	begin_thread(watch, thread, now_ns);
}

/* Names change rarely, so each is read again only now and then. */
static void renew_name(struct sf_watch *watch, struct sf_thread *thread, uint64_t now_ns)
{
	char name[SF_TASK_NAME];

	if (!sf_task_name(thread->task.pid, thread->task.tid, name) ||
	    strcmp(name, thread->name) == 0)
		return;
	memcpy(thread->name, name, sizeof(name));
	name_thread(watch, thread);
	sf_relay_thread(watch->relay, thread, now_ns);
}

/* New threads are put behind the first `n_known`. */
static void list_threads(struct sf_watch *watch, int32_t pid, size_t n_known, uint64_t now_ns)
{
	watch->ids.ids.n = 0;
	if (!sf_process_threads(pid, &watch->ids))
		return;
	for (size_t i = 0; i < watch->ids.ids.n; i++) {
		int32_t tid = watch->ids.ids.items[i];
		struct sf_thread *known = find_among(watch, n_known, tid);

		if (!known)
			add_thread(watch, pid, tid, now_ns);
		else if (known->task.pid == pid)
			known->listed = true;
	}
}

static bool add_process(struct sf_watch *watch, int32_t pid)
{
	const struct sf_watched_process process = { .pid = pid, .parent = sf_process_parent(pid) };

	return sf_vec_push(&watch->processes, process);
}

static void add_all(struct sf_watch *watch)
{
	struct sf_ids ids = { 0 };

	if (watch->cgroup)
		sf_cgroup_processes(watch->cgroup, &ids);
	else
		sf_process_all(&ids);
	for (size_t i = 0; i < ids.ids.n; i++) {
		const int32_t pid = ids.ids.items[i];

		if (!find_process(watch, pid) && !sf_process_is_kernel(pid) && !add_process(watch, pid)) /* these come by their samples */
			break;
	}
	sf_vec_deinit(&ids.ids);
}

/* True when there are new ones. */
static bool add_children(struct sf_watch *watch, uint64_t now_ns)
{
	size_t n_before = watch->processes.n;
	uint64_t start_ns = sf_raw_thread_cpu_ns(), pause_ns;
	struct sf_ids ids = { 0 };

	for (size_t i = 0; i < watch->processes.n; i++) {
		if (!sf_vec_push(&ids.ids, watch->processes.items[i].pid))
			break;
	}
	if (ids.ids.n == watch->processes.n)
		sf_process_descendants(&ids);
	for (size_t i = watch->processes.n; i < ids.ids.n && add_process(watch, ids.ids.items[i]); i++)
		;
	sf_vec_deinit(&ids.ids);
	pause_ns = (sf_raw_thread_cpu_ns() - start_ns) * SCAN_SHARE;
	watch->next_children_ns = now_ns + (pause_ns > CHILDREN_MIN_NS ? pause_ns : CHILDREN_MIN_NS);
	return watch->processes.n > n_before;
}

static void end_first(struct sf_watch *watch, const struct sf_watched_process *process)
{
	const uint64_t total_ns = sf_process_children_cpu(process->pid);

	if (total_ns > process->children_cpu_ns)
		watch->children_cpu_ns += total_ns - process->children_cpu_ns;
	watch->lost_firsts |= --watch->n_first == 0;
}

/* After all that have ended together: the CPU time of the children that were seen is known then. */
static void lose_children(struct sf_watch *watch)
{
	if (watch->lost_firsts)
		sf_unseen_lose_children(watch);
	watch->lost_firsts = false;
}

static void end_process(struct sf_watch *watch, size_t index, uint64_t now_ns)
{
	struct sf_watched_process *process = &watch->processes.items[index];
	const int32_t pid = process->pid;
	uint64_t cpu_ns;

	if (sf_process_cpu(pid, &cpu_ns))
		process->last_cpu_ns = cpu_ns;
	for (size_t i = watch->threads.n; i-- > 0;) {
		if (watch->threads.items[i]->task.pid == pid)
			sf_watch_end_thread(watch, i, now_ns);
	}
	/* One that was never read has at least what its threads had. */
	if (process->last_cpu_ns < process->threads_cpu_ns)
		process->last_cpu_ns = process->threads_cpu_ns;
	sf_unseen_lose(watch, process);
	if (!process->first)
		watch->ended_cpu_ns += process->last_cpu_ns;
	else
		end_first(watch, process);
	if (watch->options->all && !process->is_refused)
		sf_relay_process_end(watch->relay, pid);
	*process = watch->processes.items[--watch->processes.n];
}

/* The process may end before the walking thread asks for its name. */
static void tell_name(struct sf_watch *watch, struct sf_watched_process *process)
{
	char name[SF_TASK_NAME];

	if (sf_task_name(process->pid, process->pid, name))
		memcpy(process->name, name, sizeof(process->name));
	if (process->name[0])
		sf_relay_process_name(watch->relay, process->pid, process->parent, process->name);
}

bool sf_watch_has_process(const struct sf_watch *watch, int32_t pid)
{
	return find_process(watch, pid);
}

/* True while the process lives. Tells the relay of a new program in it. */
static bool look_at_process(struct sf_watch *watch, struct sf_watched_process *process)
{
	struct sf_program program;

	if (!sf_process_program(process->pid, &program) ||
	    !sf_process_cpu(process->pid, &process->last_cpu_ns))
		return false;
	if (process->program.started && program.started != process->program.started)
		return false; /* another process got the pid */
	if (!sf_program_is(&program, &process->program)) {
		if (!process->program.started)
			process->cpu_ns = process->last_cpu_ns;
		watch->next_list_ns = 0;
		set_program(watch, process, &program);
		if (!process->is_refused)
			sf_relay_process(watch->relay, process->pid, process->parent);
		if (!process->is_refused && watch->options->all)
			tell_name(watch, process);
	}
	process->program.n_threads = program.n_threads;
	return true;
}

static void set_name(struct sf_watched_process *process, const char *name)
{
	memset(process->name, 0, sizeof(process->name));
	memccpy(process->name, name, 0, sizeof(process->name) - 1);
	sf_sanitize(process->name);
}

/* A process that has ended already is ended by the next scan. */
static struct sf_watched_process *meet_process(struct sf_watch *watch, int32_t pid, int32_t parent)
{
	struct sf_watched_process process = { .pid = pid, .parent = parent };
	struct sf_watched_process *known = find_process(watch, parent);

	if (known && !known->name[0])
		(void)sf_task_name(parent, parent, known->name);
	if (known) {
		memcpy(process.name, known->name, sizeof(process.name));
		process.user = known->user;
	}
	if (!sf_vec_push(&watch->processes, process))
		return NULL;
	return &watch->processes.items[watch->processes.n - 1];
}

void sf_watch_meet_process(struct sf_watch *watch, int32_t pid, int32_t parent, const char *name, uint64_t now_ns)
{
	struct sf_watched_process *process;
	struct sf_program program;

	(void)now_ns;
	if (find_process(watch, pid) || !(process = meet_process(watch, pid, parent)))
		return;
	process->met = !watch->options->all;
	if (*name)
		set_name(process, name);
	if (sf_process_program(pid, &program) && sf_process_cpu(pid, &process->last_cpu_ns))
		set_program(watch, process, &program);
	else
		decide_by_name(watch, process);
	if (process->is_refused)
		return;
	sf_relay_process(watch->relay, pid, parent);
	if (watch->options->all)
		tell_name(watch, process);
	watch->next_list_ns = 0;
}

void sf_watch_fork(struct sf_watch *watch, int32_t pid)
{
	const struct sf_watched_process *process = find_process(watch, pid);

	if (!process || process->program.started || process->is_refused)
		return;
	sf_relay_process(watch->relay, pid, process->parent);
	if (process->name[0])
		sf_relay_process_name(watch->relay, pid, process->parent, process->name);
}

void sf_watch_exec(struct sf_watch *watch, int32_t pid, const char *name)
{
	struct sf_watched_process *process = find_process(watch, pid);
	struct sf_program program;

	if (!process)
		return;
	set_name(process, name);
	decide(watch, process, process->name);
	if (process->is_refused)
		return;
	sf_relay_process(watch->relay, pid, process->parent);
	if (sf_process_program(pid, &program))
		set_program(watch, process, &program);
	/* The process may end before its name is read. */
	sf_relay_process_name(watch->relay, pid, process->parent, process->name);
}

void sf_watch_rename(struct sf_watch *watch, int32_t tid, const char *name, uint64_t now_ns)
{
	struct sf_thread *thread = sf_watch_find(watch, tid);

	if (!thread || strncmp(name, thread->name, sizeof(thread->name) - 1) == 0)
		return;
	memset(thread->name, 0, sizeof(thread->name));
	memccpy(thread->name, name, 0, sizeof(thread->name) - 1);
	sf_sanitize(thread->name);
	name_thread(watch, thread);
	sf_relay_thread(watch->relay, thread, now_ns);
}

/* Puts it where its id belongs. */
static bool insert_thread(struct sf_watch *watch, struct sf_thread *thread)
{
	size_t at = watch->threads.n;

	if (!sf_vec_push(&watch->threads, thread))
		return false;
	for (; at && watch->threads.items[at - 1]->task.tid > thread->task.tid; at--)
		watch->threads.items[at] = watch->threads.items[at - 1];
	watch->threads.items[at] = thread;
	return true;
}

struct sf_thread *sf_watch_meet_thread(struct sf_watch *watch, int32_t pid, int32_t tid, uint64_t now_ns)
{
	const struct sf_watched_process *process = find_process(watch, pid);
	struct sf_thread *thread;

	if (process && process->is_refused)
		return NULL;
	thread = sf_thread_create(watch->last_serial + 1, pid, tid, now_ns);
	if (!thread)
		thread = sf_thread_create_ended(watch->last_serial + 1, pid, tid, process ? process->name : "", now_ns);
	if (!thread)
		return NULL;
	set_process(watch, thread, process);
	begin_account(watch, thread);
	if (!insert_thread(watch, thread)) {
		sf_thread_destroy(thread);
		return NULL;
	}
	begin_thread(watch, thread, now_ns);
	return thread;
}

/* Until the next scan; *ended: it was found to have ended by an earlier one. */
static bool is_kept(struct sf_watch *watch, bool *ended)
{
	const bool kept = watch->keeps_ended && !*ended;

	*ended = true;
	watch->has_kept |= kept;
	return kept;
}

static void end_unlisted(struct sf_watch *watch, uint64_t now_ns)
{
	for (size_t i = watch->threads.n; i-- > 0;) {
		struct sf_thread *thread = watch->threads.items[i];

		if (!thread->listed && !is_kept(watch, &thread->ended))
			sf_watch_end_thread(watch, i, now_ns);
	}
}

static void renew_names(struct sf_watch *watch, uint64_t now_ns)
{
	for (size_t i = 0; i < watch->threads.n; i++) {
		struct sf_thread *thread = watch->threads.items[i];

		if ((watch->n_scans + thread->serial) % SCANS_PER_NAME == 0)
			renew_name(watch, thread, now_ns);
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

static void list_all(struct sf_watch *watch, uint64_t now_ns)
{
	size_t n_known = watch->threads.n;

	if (sf_watch_is_sampled(watch)) {
		end_gone(watch, now_ns);
		return;
	}
	watch->n_without_files = 0;
	for (size_t i = 0; i < n_known; i++)
		watch->threads.items[i]->listed = false;
	for (size_t i = 0; i < watch->processes.n; i++) {
		if (!watch->processes.items[i].is_refused)
			list_threads(watch, watch->processes.items[i].pid, n_known, now_ns);
	}
	if (watch->threads.n > n_known)
		qsort(watch->threads.items, watch->threads.n, sizeof(watch->threads.items[0]), by_tid);
	end_unlisted(watch, now_ns);
	if (watch->n_without_files > watch->most_without_files)
		watch->most_without_files = watch->n_without_files;
	watch->next_list_ns = now_ns + LIST_NS;
}

static bool is_to_list(const struct sf_watch *watch, uint64_t now_ns)
{
	size_t n_threads = 0;

	for (size_t i = 0; i < watch->processes.n; i++)
		n_threads += watch->processes.items[i].is_refused ? 0 : watch->processes.items[i].program.n_threads;
	return n_threads != watch->threads.n || now_ns >= watch->next_list_ns;
}

bool sf_watch_scan(struct sf_watch *watch, uint64_t now_ns)
{
	uint64_t start_ns = sf_raw_thread_cpu_ns(), pause_ns;

	if (watch->options->children && !watch->knows_children && now_ns >= watch->next_children_ns) {
		if (add_children(watch, now_ns))
			watch->next_scan_ns = 0;
		watch->knows_children = watch->keeps_ended;
	}
	if (now_ns < watch->next_scan_ns)
		return watch->processes.n > 0 || watch->options->all;
	watch->n_scans++;
	watch->has_kept = false;
	if (watch->options->all && !sf_watch_is_sampled(watch))
		add_all(watch);
	for (size_t i = watch->processes.n; i-- > 0;) {
		if (!look_at_process(watch, &watch->processes.items[i]) && !is_kept(watch, &watch->processes.items[i].ended))
			end_process(watch, i, now_ns);
	}
	if (is_to_list(watch, now_ns))
		list_all(watch, now_ns);
	if (!watch->has_kept)
		lose_children(watch);
	renew_names(watch, now_ns);
	pause_ns = (sf_raw_thread_cpu_ns() - start_ns) * SCAN_SHARE;
	watch->next_scan_ns = now_ns + (pause_ns > SCAN_MIN_NS ? pause_ns : SCAN_MIN_NS);
	return watch->processes.n > 0 || watch->options->all;
}

static int64_t count_others(const struct sf_watch *watch)
{
	int64_t others_ns = 0;
	uint64_t cpu_ns;

	for (size_t i = 0; i < watch->processes.n; i++) {
		if (sf_process_cpu(watch->processes.items[i].pid, &cpu_ns))
			others_ns += (int64_t)cpu_ns;
	}
	for (size_t i = 0; i < watch->threads.n; i++)
		others_ns -= (int64_t)watch->threads.items[i]->run.cpu_ns;
	return others_ns;
}

/* A process's clock is read after its threads', so it only ever shows more. */
bool sf_watch_others_ran(struct sf_watch *watch, uint64_t unnoticed_ns)
{
	const int64_t others_ns = count_others(watch);

	if (others_ns < watch->others_ns)
		watch->others_ns = others_ns;
	return others_ns - watch->others_ns > (int64_t)unnoticed_ns;
}

void sf_watch_looked_at_all(struct sf_watch *watch)
{
	watch->others_ns = count_others(watch);
}

void sf_watch_end(struct sf_watch *watch, uint64_t now_ns)
{
	watch->over = true;
	while (watch->processes.n)
		end_process(watch, watch->processes.n - 1, now_ns);
	lose_children(watch);
	while (watch->threads.n)
		sf_watch_end_thread(watch, watch->threads.n - 1, now_ns);
}
