/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The ptrace engine for `dump`: each thread of a process once. Sleeping threads are read where they sleep. The others
 * are held, one at a time. All of it runs on a holding thread of its own, which also calls the sink.
 */
#include <stdlib.h>
#include <string.h>

#include "capture/dump.h"
#include "capture/ptrace/ptrace.h"
#include "capture/ptrace/stack_copy.h"
#include "os/clock.h"
#include "os/cpu.h"
#include "os/process.h"
#include "os/syscalls.h"

#define PATIENCE_NS 200000000   /* for a runnable thread on a busy machine */
#define STOPS_NS 20000000            /* at the end, for threads that were asked for and do not stand yet */
#define BUSY_PAUSE_NS 100000         /* between two requests for a thread that another tracer has */
#define TRIES 4                 /* for a thread that moves while it is read */

struct dumping {
	int32_t pid;
	const struct sf_saved_source *source; /* NULL: there is none */
	const struct sf_dump_sink *sink;
	struct sf_dump_cost *cost;
	struct sf_error *err;
	struct sf_ids ids;
	struct sf_stack_copy *copy;     /* room for the largest plan */
	struct sf_stack_leads leads;    /* of the thread at hand */
	struct sf_memory *memory;
	struct sf_hold_time hold_time;
	struct sf_pages pages;
	int n_requested;                /* threads that have not stood yet */
	bool failed;                /* the sink did, or memory ran out */
	bool any;                   /* there is something to show */
	int32_t first_tid;          /* of the first thread ... */
	int first_loss;             /* ... and why it has no stack */
	uint64_t busy_ns;    /* for so long threads that another tracer had were waited for */
};

/* *want becomes what the next copy needs, if that can have what this one lacks; 0: it cannot. */
static enum sf_end walk_taken(struct dumping *dumping, struct sf_dump_seen *seen, uint32_t *want)
{
	struct sf_copied_still copied;
	struct sf_verdict verdict;
	uint32_t up_to = 0;
	bool is_cut, has_lead;

	dumping->copy->taken_ns = sf_now_ns();
	sf_stack_copy_still(dumping->copy, sf_arch_host(), dumping->memory, &copied);
	verdict = dumping->sink->still(dumping->sink->arg, &copied.still, dumping->err);
	dumping->failed |= verdict.failed;
	seen->loss = -1;
	is_cut = verdict.end == SF_END_COPY && *want < SF_COPY_MAX;
	has_lead = verdict.end == SF_END_OTHER_STACK && dumping->leads.n_found < SF_MAX_OTHER_STACKS &&
		   sf_stack_leads_find(&dumping->leads, &copied.still, copied.unread);
	if (verdict.end == SF_END_OTHER_STACK && !has_lead)
		up_to = sf_copy_up_to(dumping->copy, copied.unread);
	*want = is_cut ? sf_copy_more(*want, *want) : has_lead ? *want : up_to;
	return verdict.end;
}

/* Waits for this one thread; others that answer late are let go. */
static bool wait_for(struct dumping *dumping, int32_t tid, struct sf_held *held)
{
	for (;;) {
		sf_hold_time_wait(&dumping->hold_time, true);
		if (!sf_hold_wait(held, true))
			break;
		sf_hold_time_answer(&dumping->hold_time);
		dumping->n_requested--;
		if (held->tid == tid)
			return true;
		if (held->stopped)
			sf_hold_release(held);
	}
	return false;
}

/* Lets go of threads that were asked for and stand by now. `wait`: until all have, or the alarm rings. */
static void let_go(struct dumping *dumping, bool wait)
{
	struct sf_held held;

	while (dumping->n_requested > 0 && sf_hold_wait(&held, wait)) {
		dumping->n_requested--;
		if (held.stopped)
			sf_hold_release(&held);
	}
}

/* A thread that another stillframe holds for a moment is requested again; *start_ns_ret: the time of the last request. */
static enum sf_hold request(struct dumping *dumping, int32_t tid, uint64_t *start_ns_ret)
{
	enum sf_hold result;

	for (;;) {
		if (!dumping->n_requested)
			sf_hold_let_stop();
		*start_ns_ret = sf_now_ns();
		sf_alarm_set(*start_ns_ret + PATIENCE_NS);
		result = sf_hold_request(tid);
		if (result != SF_HOLD_BUSY || dumping->busy_ns >= SF_HOLD_OTHERS_NS)
			return result;
		let_go(dumping, false);
		sf_sleep_until(*start_ns_ret + BUSY_PAUSE_NS);
		dumping->busy_ns += sf_now_ns() - *start_ns_ret;
	}
}

static enum sf_loss loss_of(enum sf_hold result)
{
	return result == SF_HOLD_GONE	? SF_LOSS_GONE
	       : result == SF_HOLD_BUSY	  ? SF_LOSS_BUSY
	       : result == SF_HOLD_BARRED ? SF_LOSS_LATE
					  : SF_LOSS_DENIED;
}

/* Holds the thread for one copy of up to `want` bytes of its stack, and of the others. */
static bool hold_once(struct dumping *dumping, struct sf_dump_seen *seen, uint32_t want)
{
	const struct sf_copy_plan plan = sf_stack_leads_plan(&dumping->leads, want);
	uint64_t start_ns;
	const enum sf_hold result = request(dumping, seen->tid, &start_ns);
	struct sf_held held;
	bool complete;

	if (result != SF_HOLD_REQUESTED) {
		seen->loss = loss_of(result);
		return false;
	}
	dumping->n_requested++;
	if (!wait_for(dumping, seen->tid, &held) || !held.stopped) {
		seen->loss = SF_LOSS_LATE;
		return false;
	}
	complete = sf_copy_held(&held, dumping->pid, &plan, &dumping->pages, dumping->copy);
	sf_hold_release(&held);
	seen->held_ns = sf_hold_time_released(&dumping->hold_time, start_ns);
	if (seen->held_ns > dumping->cost->longest_hold_ns)
		dumping->cost->longest_hold_ns = seen->held_ns;
	seen->loss = complete ? -1 : held.is_32_bit ? SF_LOSS_NARROW : SF_LOSS_GONE;
	return complete;
}

/* Also after a look that found it in a call. */
static void describe_running(struct sf_dump_seen *seen)
{
	seen->state = SF_STATE_RUNNING;
	seen->syscall = SF_SYSCALL_NONE;
}

/* A thread that has left the call in which it was seen stands where it ran. */
static void describe_held(const struct dumping *dumping, struct sf_dump_seen *seen, const struct sf_task_look *look)
{
	if (look->placed && !sf_copy_is_at(dumping->copy, look))
		describe_running(seen);
}

/* Walks take long where they read files, so each hold has a look before it. False: the thread is to be looked at anew. */
static bool dump_held(struct dumping *dumping, struct sf_dump_seen *seen, const struct sf_task *task,
		      const struct sf_task_look *look)
{
	uint32_t want = SF_COPY_FIRST;
	bool has_still = seen->loss < 0; /* of a look or a hold before: then the thread has no loss */
	bool fine = true;

	if (sf_task_stays_in_kernel(dumping->pid, seen->tid)) {
		sf_copy_none(dumping->pid, seen->tid, dumping->copy);
		seen->unheld = true;
		walk_taken(dumping, seen, &want);
		return true;
	}
	while (want && (fine = sf_task_is_as_seen(task, look)) && hold_once(dumping, seen, want)) {
		seen->unheld = false;
		describe_held(dumping, seen, look);
		walk_taken(dumping, seen, &want);
		has_still = true;
	}
	seen->loss = has_still ? -1 : seen->loss;
	return fine;
}

/* Reads and walks it where it sleeps; *end_ret is how the walk ended. */
static enum sf_copy_result take_asleep(struct dumping *dumping, struct sf_dump_seen *seen, const struct sf_task *task,
				const struct sf_task_look *look, enum sf_end *end_ret)
{
	enum sf_copy_result result = SF_COPY_DONE;
	uint32_t want = SF_COPY_FIRST;

	*end_ret = SF_END_EMPTY;
	while (want && result == SF_COPY_DONE) {
		const struct sf_copy_plan plan = sf_stack_leads_plan(&dumping->leads, want);

		result = sf_copy_blocked(task, look, &plan, &dumping->pages, dumping->copy);
		if (result == SF_COPY_DONE) {
			seen->unheld = true;
			*end_ret = walk_taken(dumping, seen, &want);
		}
	}
	return result;
}

static void describe_sleep(const struct dumping *dumping, struct sf_dump_seen *seen, const struct sf_task_look *look)
{
	const char letter = sf_task_letter(dumping->pid, seen->tid);

	seen->state = letter == 'T' || letter == 't' ? SF_STATE_STOPPED : look->state;
	seen->syscall = look->syscall;
	memcpy(seen->args, look->args, sizeof(seen->args));
}

/* In a system call that continues afterwards, or in a job control stop, which no call sees. */
static bool may_be_held(const struct dumping *dumping, const struct sf_dump_seen *seen)
{
	if (seen->state == SF_STATE_STOPPED)
		return sf_task_tracer(dumping->pid, seen->tid) == 0;
	return sf_syscall_restarts(dumping->pid, seen->tid, seen->syscall, seen->args);
}

/* In a job control stop amid its own code: any register may say where its caller is, and /proc shows two. */
static bool is_stopped_in_code(const struct sf_dump_seen *seen)
{
	return seen->state == SF_STATE_STOPPED && seen->syscall == SF_SYSCALL_FAULT;
}

/* True when there is nothing left to do for this thread: it was read, or it has ended. */
static bool dump_asleep(struct dumping *dumping, struct sf_dump_seen *seen,
			const struct sf_task *task, const struct sf_task_look *look)
{
	enum sf_copy_result result;
	enum sf_end end;

	describe_sleep(dumping, seen, look);
	if (is_stopped_in_code(seen) && may_be_held(dumping, seen)) {
		if (!dump_held(dumping, seen, task, look))
			return false;
		if (seen->loss < 0)
			return true;
	}
	result = take_asleep(dumping, seen, task, look, &end);
	if (result == SF_COPY_MOVED)
		return false;
	describe_sleep(dumping, seen, look);
	if (result == SF_COPY_NOT_PLACED && seen->state != SF_STATE_STOPPED)
		seen->loss = SF_LOSS_DENIED;
	return result != SF_COPY_DONE || end != SF_END_REGISTER || !may_be_held(dumping, seen) ||
	       dump_held(dumping, seen, task, look);
}

static enum sf_copy_result take_saved(struct dumping *dumping, struct sf_dump_seen *seen, const struct sf_saved *saved)
{
	enum sf_copy_result result = SF_COPY_DONE;
	uint32_t want = SF_COPY_FIRST;

	while (want && result == SF_COPY_DONE) {
		const struct sf_copy_plan plan = sf_stack_leads_plan(&dumping->leads, want);

		result = sf_copy_saved(dumping->source, saved, &plan, &dumping->pages, dumping->copy);
		if (result == SF_COPY_DONE)
			walk_taken(dumping, seen, &want);
	}
	return result;
}

/* False: it is to be looked at in another way, as it was on a CPU, or moved each time that it was read. */
static bool dump_saved(struct dumping *dumping, struct sf_dump_seen *seen)
{
	struct sf_saved saved;

	for (int i = 0; i < TRIES; i++) {
		if (!sf_saved_get(dumping->source, dumping->pid, seen->tid, i > 0, &saved))
			return false;
		if (take_saved(dumping, seen, &saved) != SF_COPY_DONE) {
			seen->loss = SF_LOSS_MOVED;
			continue;
		}
		seen->unheld = true;
		seen->switches = saved.switches;
		memcpy(seen->name, saved.name, sizeof(seen->name));
		seen->state = saved.look.state;
		seen->syscall = saved.look.syscall;
		memcpy(seen->args, saved.look.args, sizeof(seen->args));
		return true;
	}
	return false;
}

static bool dump_seen(struct dumping *dumping, struct sf_dump_seen *seen, const struct sf_task *task,
		      const struct sf_task_look *look)
{
	if (look->state != SF_STATE_RUNNING)
		return dump_asleep(dumping, seen, task, look);
	describe_running(seen);
	return dump_held(dumping, seen, task, look);
}

static void look_at_thread(struct dumping *dumping, struct sf_dump_seen *seen)
{
	struct sf_task_look look;
	struct sf_task task;

	if (!sf_task_open(dumping->pid, seen->tid, &task))
		return;
	sf_task_name(dumping->pid, seen->tid, seen->name);
	for (int i = 1; i <= TRIES && sf_task_look(&task, &look); i++) {
		if (dump_seen(dumping, seen, &task, &look) || (i == TRIES && seen->loss < 0))
			break;
		seen->loss = SF_LOSS_MOVED;
	}
	sf_task_close(&task);
}

/* A thread that answers late, moves all the time, or runs 32-bit code is there: it is worth showing. */
static bool is_shown(const struct sf_dump_seen *seen)
{
	return seen->loss < 0 || seen->loss == SF_LOSS_LATE || seen->loss == SF_LOSS_MOVED || seen->loss == SF_LOSS_NARROW;
}

static void dump_thread(struct dumping *dumping, int32_t tid)
{
	struct sf_dump_seen seen = { .tid = tid, .loss = SF_LOSS_GONE, .syscall = SF_SYSCALL_NONE };

	dumping->leads = (struct sf_stack_leads){ 0 };
	if (!dump_saved(dumping, &seen)) {
		if (sf_task_letter(dumping->pid, tid) == 'Z')
			return; /* the first thread, which has ended before the others */
		seen.loss = SF_LOSS_GONE;
		look_at_thread(dumping, &seen);
	}
	if (!dumping->first_tid) {
		dumping->first_tid = tid;
		dumping->first_loss = seen.loss;
	}
	dumping->any |= is_shown(&seen);
	dumping->failed = dumping->failed || !dumping->sink->thread(dumping->sink->arg, &seen, dumping->err);
}

static bool prepare(struct dumping *dumping)
{
	dumping->copy = malloc(sizeof(*dumping->copy) + SF_COPY_MAX_ROOM);
	dumping->memory = sf_memory_create();
	if (!dumping->copy || !dumping->memory)
		return sf_fail_memory(dumping->err);
	return sf_alarm_open(dumping->err) && sf_hold_time_open(&dumping->hold_time, dumping->err);
}

static void look_at_threads(void *arg)
{
	struct dumping *dumping = arg;
	uint64_t start_ns;

	dumping->failed = !prepare(dumping);
	if (!dumping->failed) {
		sf_cpu_prefer();
		start_ns = sf_now_ns();
		for (size_t i = 0; !dumping->failed && i < dumping->ids.ids.n; i++)
			dump_thread(dumping, dumping->ids.ids.items[i]);
		sf_alarm_set(sf_now_ns() + STOPS_NS);
		let_go(dumping, true);
		dumping->cost->looking_ns = sf_now_ns() - start_ns;
		sf_hold_time_close(&dumping->hold_time);
	}
	sf_alarm_close();
	sf_pages_close(&dumping->pages);
	sf_memory_destroy(dumping->memory);
	free(dumping->copy);
}

/* Nothing was seen of any thread: why. */
static bool explain_nothing(const struct dumping *dumping, struct sf_error *err)
{
	const enum sf_hold result = dumping->first_loss == SF_LOSS_DENIED ? SF_HOLD_DENIED :
				    dumping->first_loss == SF_LOSS_BUSY ? SF_HOLD_BUSY : SF_HOLD_GONE;
	const int32_t tid = dumping->first_tid;

	return sf_hold_explain(dumping->pid, tid ? tid : dumping->pid, tid ? result : SF_HOLD_GONE, err);
}

bool sf_ptrace_dump_saved(int32_t pid, const struct sf_saved_source *source, const struct sf_dump_sink *sink,
			  struct sf_dump_cost *cost, struct sf_error *err)
{
	struct dumping dumping = { .pid = pid, .source = source, .sink = sink, .cost = cost, .err = err };
	bool fine;

	*cost = (struct sf_dump_cost){ 0 };
	fine = sf_process_threads(pid, &dumping.ids);
	if (!fine)
		sf_fail_os(err, "cannot list the threads of pid %d", pid);
	fine = fine && sf_hold_run(look_at_threads, &dumping, err) && !dumping.failed;
	sf_vec_deinit(&dumping.ids.ids);
	return fine && (dumping.any || explain_nothing(&dumping, err));
}

bool sf_ptrace_dump(int32_t pid, const struct sf_dump_sink *sink, struct sf_dump_cost *cost, struct sf_error *err)
{
	return sf_ptrace_dump_saved(pid, NULL, sink, cost, err);
}
