/* SPDX-License-Identifier: Apache-2.0 */
#include "session/dump.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/output.h"
#include "capture/hold_time.h"
#include "capture/take.h"
#include "os/clock.h"
#include "os/hold.h"
#include "os/process.h"
#include "os/syscalls.h"
#include "session/dump_names.h"

#define PATIENCE_NS 200000000   /* for a thread that waits for a CPU on a busy machine */
#define TRIES 4

struct taking {
	struct sf_dump *dump;
	struct sf_taken *taken;     /* room for SF_TAKE_MAX bytes of stack */
	struct sf_memory *memory;
	int n_asked;                /* threads that have not stood yet */
	struct sf_hold_time hold_time;
	struct sf_pages pages;
};

static bool keep_trace(struct taking *taking, struct sf_dump_thread *thread)
{
	const struct sf_trace *trace = &taking->dump->walker.trace;

	thread->trace.n = 0;
	if (!sf_vec_reserve(&thread->trace, trace->n_frames))
		return false;
	if (trace->n_frames)
		memcpy(thread->trace.items, trace->frames,
		       trace->n_frames * sizeof(*trace->frames));
	thread->trace.n = trace->n_frames;
	thread->end = (uint8_t)trace->end;
	return true;
}

static enum sf_end walk_taken(struct taking *taking, struct sf_dump_thread *thread)
{
	struct sf_still still;

	taking->taken->taken_ns = sf_now_ns();
	sf_taken_still(taking->taken, sf_arch_host(), taking->memory, &still);
	sf_walker_walk(&taking->dump->walker, &still);
	thread->loss = keep_trace(taking, thread) ? -1 : SF_LOSS_RING_FULL;
	return taking->dump->walker.trace.end;
}

/* Waits for this one thread; others that answer late are let go. */
static bool wait_for(struct taking *taking, int32_t tid, struct sf_held *held)
{
	for (;;) {
		sf_hold_time_wait(&taking->hold_time, true);
		if (!sf_hold_wait(held, true))
			break;
		sf_hold_time_answer(&taking->hold_time);
		taking->n_asked--;
		if (held->tid == tid)
			return true;
		if (held->stopped)
			sf_hold_release(held);
	}
	return false;
}

static enum sf_loss loss_of(enum sf_hold result)
{
	return result == SF_HOLD_GONE	? SF_LOSS_GONE
	       : result == SF_HOLD_BUSY	  ? SF_LOSS_BUSY
	       : result == SF_HOLD_BARRED ? SF_LOSS_LATE
					  : SF_LOSS_DENIED;
}

/* Holds the thread for one copy of up to `want` bytes of its stack. */
static bool hold_once(struct taking *taking, struct sf_dump_thread *thread, uint32_t want)
{
	int32_t pid = taking->dump->pid;
	uint64_t start_ns;
	enum sf_hold result;
	struct sf_held held;
	bool complete;
	start_ns = sf_now_ns();
	sf_alarm_set(start_ns + PATIENCE_NS);
	result = sf_hold_ask(thread->tid);
	if (result != SF_HOLD_ASKED) {
		thread->loss = loss_of(result);
		return false;
	}
	taking->n_asked++;
	if (!wait_for(taking, thread->tid, &held) || !held.stopped) {
		thread->loss = SF_LOSS_LATE;
		return false;
	}
	complete = sf_take_held(&held, pid, want, &taking->pages, taking->taken);
	sf_hold_release(&held);
	thread->held_ns = sf_hold_time_released(&taking->hold_time, start_ns);
	if (thread->held_ns > taking->dump->longest_hold_ns)
		taking->dump->longest_hold_ns = thread->held_ns;
	thread->loss = complete ? -1 : SF_LOSS_GONE;
	return complete;
}

static void dump_held(struct taking *taking, struct sf_dump_thread *thread)
{
	uint32_t want = SF_TAKE_FIRST;

	while (hold_once(taking, thread, want)) {
		thread->unheld = false;
		if (walk_taken(taking, thread) != SF_END_COPY || want >= SF_TAKE_MAX)
			return;
		want = sf_take_more(want, want);
	}
}

static enum sf_take take_asleep(struct taking *taking, struct sf_dump_thread *thread,
				const struct sf_task *task, const struct sf_task_look *look)
{
	uint32_t want = SF_TAKE_FIRST;
	enum sf_take result;

	while ((result = sf_take_asleep(task, look, want, &taking->pages, taking->taken)) == SF_TAKE_DONE) {
		thread->unheld = true;
		if (walk_taken(taking, thread) != SF_END_COPY || want >= SF_TAKE_MAX)
			break;
		want = sf_take_more(want, want);
	}
	return result;
}

static void describe_wait(const struct sf_dump *dump, struct sf_dump_thread *thread,
			  const struct sf_task_look *look)
{
	char letter = sf_task_letter(dump->pid, thread->tid);

	thread->state = letter == 'T' || letter == 't' ? SF_STATE_STOPPED : look->state;
	thread->syscall = look->syscall;
	if (thread->state != SF_STATE_BLOCKED || look->syscall == SF_SYSCALL_NONE)
		return;
	sf_syscall_name(look->syscall, thread->wait, sizeof(thread->wait));
	if (look->syscall >= 0)
		sf_syscall_describe(dump->pid, look->syscall, look->args, thread->detail,
				    sizeof(thread->detail));
}

/* In a system call that goes on afterwards, or in a job control stop, which no call sees. */
static bool may_be_held(const struct sf_dump *dump, const struct sf_dump_thread *thread,
			const struct sf_task_look *look)
{
	if (thread->state == SF_STATE_STOPPED)
		return sf_task_tracer(dump->pid, thread->tid) == 0;
	return sf_syscall_restarts(dump->pid, look->syscall, look->args);
}

/* True when there is nothing left to do for this thread: it was read, or it has ended. */
static bool dump_asleep(struct taking *taking, struct sf_dump_thread *thread,
			const struct sf_task *task, const struct sf_task_look *look)
{
	enum sf_take result = take_asleep(taking, thread, task, look);

	if (result == SF_TAKE_MOVED)
		return false;
	describe_wait(taking->dump, thread, look);
	if (result == SF_TAKE_NOT_PLACED && thread->state != SF_STATE_STOPPED)
		thread->loss = SF_LOSS_DENIED;
	if (result == SF_TAKE_DONE &&
	    (thread->end == SF_END_REGISTER || taking->dump->walker.lacks_registers) &&
	    may_be_held(taking->dump, thread, look))
		dump_held(taking, thread);
	return true;
}

static void dump_thread(struct taking *taking, struct sf_dump_thread *thread)
{
	struct sf_task_look look;
	struct sf_task task;

	thread->loss = SF_LOSS_GONE;
	if (!sf_task_open(taking->dump->pid, thread->tid, &task))
		return;
	sf_task_name(taking->dump->pid, thread->tid, thread->name);
	for (int i = 0; i < TRIES && sf_task_look(&task, &look); i++) {
		if (look.state == SF_STATE_RUNNING) {
			thread->state = SF_STATE_RUNNING;
			dump_held(taking, thread);
			break;
		}
		if (dump_asleep(taking, thread, &task, &look))
			break;
		thread->loss = SF_LOSS_MOVED;
	}
	sf_task_close(&task);
}

static bool list_threads(struct sf_dump *dump, struct sf_error *err)
{
	struct sf_ids ids = { 0 };
	bool fine = sf_process_threads(dump->pid, &ids);

	for (size_t i = 0; fine && i < ids.ids.n; i++) {
		struct sf_dump_thread thread = { .tid = ids.ids.items[i], .end = SF_END_EMPTY };

		if (sf_task_letter(dump->pid, thread.tid) == 'Z')
			continue; /* the first thread, which has ended before the others */
		fine = sf_vec_push(&dump->threads, thread);
	}
	sf_vec_deinit(&ids.ids);
	if (!fine)
		sf_fail_os(err, "cannot list the threads of pid %d", dump->pid);
	return fine;
}

/* Threads that were asked for and did not stand: let go of what stands by now. */
static void let_all_go(struct taking *taking)
{
	struct sf_held held;

	sf_alarm_set(sf_now_ns() + 20000000);
	while (taking->n_asked > 0 && sf_hold_wait(&held, true)) {
		taking->n_asked--;
		if (held.stopped)
			sf_hold_release(&held);
	}
}

/* Nothing was seen of any thread: say why. */
static bool explain_nothing(const struct sf_dump *dump, struct sf_error *err)
{
	static const enum sf_hold results[SF_N_LOSSES] = {
		[SF_LOSS_GONE] = SF_HOLD_GONE,
		[SF_LOSS_BUSY] = SF_HOLD_BUSY,
	};
	const struct sf_dump_thread *first = &dump->threads.items[0];

	for (size_t i = 0; i < dump->threads.n; i++) {
		if (dump->threads.items[i].loss < 0)
			return true;
	}
	if (first->loss == SF_LOSS_LATE || first->loss == SF_LOSS_MOVED)
		return true; /* worth showing: the threads are there */
	return sf_hold_explain(
		dump->pid, first->tid,
		first->loss == SF_LOSS_DENIED ? SF_HOLD_DENIED : results[first->loss], err);
}

/* The part of a dump in which threads may be held. */
struct looking {
	struct sf_dump *dump;
	struct sf_error *err;
	bool fine;
};

static void look_at_threads(void *arg)
{
	struct looking *looking = arg;
	struct sf_dump *dump = looking->dump;
	struct taking taking = {
		.dump = dump,
		.taken = malloc(sizeof(*taking.taken) + SF_TAKE_MAX),
		.memory = sf_memory_create(),
	};
	uint64_t start_ns;

	if (!taking.taken || !taking.memory)
		sf_fail_memory(looking->err);
	looking->fine = taking.taken && taking.memory && sf_alarm_open(looking->err) &&
			sf_hold_time_open(&taking.hold_time, looking->err);
	if (looking->fine) {
		sf_cpu_prefer();
		start_ns = sf_now_ns();
		for (size_t i = 0; i < dump->threads.n; i++)
			dump_thread(&taking, &dump->threads.items[i]);
		let_all_go(&taking);
		dump->looking_ns = sf_now_ns() - start_ns;
		sf_hold_time_close(&taking.hold_time);
	}
	sf_alarm_close();
	sf_pages_close(&taking.pages);
	sf_memory_destroy(taking.memory);
	free(taking.taken);
}

bool sf_dump_take(struct sf_dump *ret, int32_t pid, uint32_t max_depth, struct sf_error *err)
{
	struct looking looking = { .dump = ret, .err = err };

	*ret = (struct sf_dump){ .pid = pid, .strings = sf_intern_create() };
	if (!ret->strings || !sf_walker_init(&ret->walker, max_depth, err))
		return sf_fail_memory(err);
	sf_process_name(pid, ret->name, sizeof(ret->name));
	ret->tracer = sf_task_tracer(pid, pid);
	if (ret->tracer)
		sf_process_name(ret->tracer, ret->tracer_name, sizeof(ret->tracer_name));
	return sf_walker_prepare(&ret->walker, pid, err) && list_threads(ret, err) &&
	       sf_hold_run(look_at_threads, &looking, err) && looking.fine &&
	       explain_nothing(ret, err) &&
	       ((ret->note = sf_walker_news(&ret->walker, pid)), sf_dump_name(ret, err));
}

void sf_dump_deinit(struct sf_dump *dump)
{
	for (size_t i = 0; i < dump->threads.n; i++) {
		sf_vec_deinit(&dump->threads.items[i].trace);
		sf_vec_deinit(&dump->threads.items[i].frames);
	}
	sf_vec_deinit(&dump->threads);
	sf_vec_deinit(&dump->paths);
	sf_intern_destroy(dump->strings);
	sf_walker_deinit(&dump->walker);
}

uint32_t sf_dump_text(struct sf_dump *dump, const char *text)
{
	SF_CLEANUP(free) char *clean = NULL;

	if (sf_is_text(text))
		return sf_intern_string(dump->strings, text);
	clean = strdup(text);
	if (!clean)
		return 0;
	sf_sanitize(clean);
	return sf_intern_string(dump->strings, clean);
}

const char *sf_dump_string(const struct sf_dump *dump, uint32_t number)
{
	return number ? sf_intern_get(dump->strings, number, NULL) : "";
}

const char *sf_dump_path(const struct sf_dump *dump, uint32_t image)
{
	return image && image <= dump->paths.n
		       ? sf_dump_string(dump, dump->paths.items[image - 1]) : "";
}
