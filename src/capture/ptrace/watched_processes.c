/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The processes that are watched: how they come into sight, what runs in them, whether they fit the filter, and how
 * they end.
 */
#include "capture/ptrace/watched.h"

#include <string.h>
#include <unistd.h>

#include "base/output.h"
#include "capture/ptrace/unsampled.h"

#define MAX_DEPTH 64                /* ancestors of a process that are looked at */

/*
 * Whether it fits the filter, with this name. A user or a name that cannot be read any more is as it was, or as the
 * parent's is.
 */
static void decide(const struct sf_watch *watch, struct sf_watched_process *process, const char *name)
{
	const struct sf_process_filter *filter = watch->options->filter;
	const uint32_t user = filter ? sf_process_user(process->pid) : UINT32_MAX;
	const bool was_refused = process->is_refused;

	if (user != UINT32_MAX)
		process->user = user;
	process->is_refused = !sf_process_filter_fits(filter, name, process->user);
	if (was_refused && !process->is_refused)
		sf_watch_begin_again(watch, process);
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

bool sf_watch_add_chosen(struct sf_watch *watch, int32_t pid)
{
	struct sf_watched_process process = { .pid = pid, .first = true };

	if (watch->options->n_more)
		process.first = !has_chosen_ancestor(watch->options, pid);
	if (process.first)
		process.children_cpu_ns = sf_process_children_cpu(pid);
	watch->n_first += process.first;
	process.is_new = pid == watch->options->child && sf_process_cpu(pid, &process.cpu_ns); /* it waits, and has no other thread */
	decide_by_name(watch, &process);
	return sf_vec_push(&watch->processes, process);
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
	process->executes = false;
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

/* The process may end before the walking thread asks for its name. */
static void send_name(struct sf_watch *watch, struct sf_watched_process *process)
{
	char name[SF_TASK_NAME];

	if (sf_task_name(process->pid, process->pid, name))
		memcpy(process->name, name, sizeof(process->name));
	if (process->name[0])
		sf_relay_process_name(watch->relay, process->pid, process->parent, process->name);
}

/*
 * CPU time of a process from before the first look at it is no part of the recording. The same holds for its children that
 * had ended by the first scan. The kernel adds their time to the count of a first process later: when this process ends.
 */
static void begin_account(struct sf_watch *watch, struct sf_watched_process *process)
{
	process->cpu_ns = process->last_cpu_ns;
	if (process->first)
		process->children_cpu_ns = sf_process_children_cpu(process->pid);
	else if (watch->n_scans == 1 && watch->options->children)
		watch->ended_cpu_ns += sf_process_children_cpu(process->pid);
}

/*
 * Whether a process that comes into sight began while it was watched. A search may pass over one that had begun before, as
 * lists of children change while they are read: that a later search has found it proves nothing.
 */
static bool is_new(const struct sf_watch *watch, const struct sf_watched_process *process, const struct sf_program *program)
{
	return process->is_new || (!process->first && !watch->options->all && program->started >= watch->begun);
}

static void meet(struct sf_watch *watch, struct sf_watched_process *process, const struct sf_program *program)
{
	process->is_new = is_new(watch, process, program);
	if (!process->is_new)
		begin_account(watch, process);
}

/* Whether the process runs another program than before. Some time before a process is gone its memory is: that is no program. */
static bool is_another(const struct sf_program *now, const struct sf_program *before)
{
	return !sf_program_is(now, before) && (now->code || !before->started);
}

/*
 * Whether a new program is left to the record of its exec, which has its place among the samples: where the engine has records,
 * those of the program before may be in the rings. Records may be lost: the next scan does not wait for one again.
 */
static bool is_left_to_record(const struct sf_watch *watch, struct sf_watched_process *process)
{
	process->executes = watch->keeps_ended && process->program.started && !process->executes;
	return process->executes;
}

/* Tells the relay of a new program in the process. */
static void begin_program(struct sf_watch *watch, struct sf_watched_process *process, const struct sf_program *program)
{
	if (!process->program.started)
		meet(watch, process, program);
	watch->next_list_ns = 0;
	set_program(watch, process, program);
	if (!process->is_refused)
		sf_relay_process(watch->relay, process->pid, process->parent);
	if (!process->is_refused && watch->options->all)
		send_name(watch, process);
}

/* Whether what the system says of the id now is of another process. */
static bool is_of_another(const struct sf_program *now, const struct sf_watched_process *process)
{
	return process->program.started && now->started != process->program.started;
}

/* True while the process lives. */
static bool look_at_process(struct sf_watch *watch, struct sf_watched_process *process)
{
	struct sf_program program;

	if (!sf_process_program(process->pid, &program))
		return false;
	if (is_of_another(&program, process)) {
		watch->knows_children = false; /* a search finds that one when this one is gone */
		return false;
	}
	if (!sf_process_cpu(process->pid, &process->last_cpu_ns))
		return false;
	if (is_another(&program, &process->program) && !is_left_to_record(watch, process))
		begin_program(watch, process, &program);
	process->program.n_threads = program.n_threads;
	return true;
}

static void end_first(struct sf_watch *watch, const struct sf_watched_process *process, bool is_replaced)
{
	const uint64_t total_ns = is_replaced ? 0 : sf_process_children_cpu(process->pid);

	if (total_ns > process->children_cpu_ns)
		watch->children_cpu_ns += total_ns - process->children_cpu_ns;
	watch->lost_firsts |= --watch->n_first == 0;
}

/* Threads without a sample are to end before those with one: sf_use_shares_move(). */
static void end_threads(struct sf_watch *watch, int32_t pid, bool with_samples, uint64_t now_ns)
{
	for (size_t i = watch->threads.n; i-- > 0;) {
		if (watch->threads.items[i]->task.pid == pid && watch->threads.items[i]->ran == with_samples)
			sf_watch_end_thread(watch, i, now_ns);
	}
}

void sf_watch_end_process(struct sf_watch *watch, size_t index, uint64_t now_ns)
{
	struct sf_watched_process *process = &watch->processes.items[index];
	const int32_t pid = process->pid;
	struct sf_program now;
	const bool is_replaced = sf_process_program(pid, &now) && is_of_another(&now, process);
	uint64_t cpu_ns;

	if (!is_replaced && sf_process_cpu(pid, &cpu_ns))
		process->last_cpu_ns = cpu_ns;
	end_threads(watch, pid, false, now_ns);
	end_threads(watch, pid, true, now_ns);
	/* A process whose clock was never read has at least the CPU time of its threads. */
	if (process->last_cpu_ns < process->threads_cpu_ns)
		process->last_cpu_ns = process->threads_cpu_ns;
	sf_little_use_lose(watch, &process->little);
	sf_unseen_lose(watch, process);
	if (!process->first)
		watch->ended_cpu_ns += process->last_cpu_ns;
	else
		end_first(watch, process, is_replaced);
	if (watch->options->all && !process->is_refused)
		sf_relay_process_end(watch->relay, pid);
	if (watch->options->children && !watch->keeps_ended)
		(void)sf_vec_push(&watch->unreaped.ids, pid);
	*process = watch->processes.items[--watch->processes.n];
}

void sf_watch_lose_children(struct sf_watch *watch)
{
	if (watch->lost_firsts)
		sf_unseen_lose_children(watch);
	watch->lost_firsts = false;
}

void sf_watch_look_at_processes(struct sf_watch *watch, uint64_t now_ns)
{
	for (size_t i = watch->processes.n; i-- > 0;) {
		if (!look_at_process(watch, &watch->processes.items[i]) && !sf_watch_keeps(watch, &watch->processes.items[i].ended))
			sf_watch_end_process(watch, i, now_ns);
	}
}

bool sf_watch_has_process(const struct sf_watch *watch, int32_t pid)
{
	return sf_watch_find_process(watch, pid);
}

void sf_watch_process_name(const struct sf_watch *watch, int32_t pid, char ret[SF_TASK_NAME])
{
	const struct sf_watched_process *process = sf_watch_find_process(watch, pid);

	memset(ret, 0, SF_TASK_NAME);
	if (process)
		memcpy(ret, process->name, SF_TASK_NAME);
}

bool sf_watch_is_refused(const struct sf_watch *watch, int32_t pid)
{
	const struct sf_watched_process *process = sf_watch_find_process(watch, pid);

	return process && process->is_refused;
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
	struct sf_watched_process process = { .pid = pid, .parent = parent, .origin = parent };
	struct sf_watched_process *known = sf_watch_find_process(watch, parent);

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

void sf_watch_add_process(struct sf_watch *watch, int32_t pid, int32_t parent, const char *name)
{
	struct sf_watched_process *process;
	struct sf_program program;

	if (sf_watch_find_process(watch, pid) || !(process = meet_process(watch, pid, parent)))
		return;
	process->is_new = !watch->options->all;
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
		send_name(watch, process);
	watch->next_list_ns = 0;
}

void sf_watch_process_begins(struct sf_watch *watch, int32_t pid)
{
	struct sf_watched_process *process = sf_watch_find_process(watch, pid);

	if (!process || process->is_new || process->first || watch->options->all)
		return;
	process->is_new = true;
	process->cpu_ns = 0;
	for (size_t i = 0; i < watch->threads.n; i++) {
		if (watch->threads.items[i]->task.pid == pid)
			sf_watch_begin_account(watch, process, watch->threads.items[i]);
	}
}

/*
 * A process has the name of its parent until an exec. The relay is told, also of one that lived when it was met: it may
 * end before the walking thread asks the system, whose word counts.
 */
static void inherit_name(struct sf_watch *watch, struct sf_watched_process *process)
{
	const struct sf_watched_process *parent = sf_watch_find_process(watch, process->origin);
	const bool was_refused = process->is_refused;

	if (parent && parent->name[0])
		memcpy(process->name, parent->name, sizeof(process->name));
	decide_by_name(watch, process);
	if (process->is_refused)
		return;
	if (was_refused)
		sf_relay_process(watch->relay, process->pid, process->parent);
	if (process->name[0])
		sf_relay_process_name(watch->relay, process->pid, process->parent, process->name);
}

void sf_watch_fork(struct sf_watch *watch, int32_t pid)
{
	struct sf_watched_process *process = sf_watch_find_process(watch, pid);

	if (!process)
		return;
	inherit_name(watch, process);
	if (!process->is_refused && process->origin)
		sf_relay_process_forked(watch->relay, pid, process->origin);
}

void sf_watch_originates(struct sf_watch *watch, int32_t pid, int32_t origin)
{
	struct sf_watched_process *process = sf_watch_find_process(watch, pid);

	if (!process)
		return;
	process->origin = origin;
	if (!process->is_refused)
		sf_relay_process_forked(watch->relay, pid, origin);
}

void sf_watch_exec(struct sf_watch *watch, int32_t pid, const char *name)
{
	struct sf_watched_process *process = sf_watch_find_process(watch, pid);
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
