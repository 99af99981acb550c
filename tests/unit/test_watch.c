/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The processes and threads that an engine watches from outside, on a system that is made up: what comes into sight and goes,
 * and the CPU time that ends in no sample. All of /proc, our own clock and the relay are replaced (--wrap).
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "capture/ptrace/unsampled.h"
#include "capture/ptrace/watch.h"
#include "frozen/raw.h"

#define MS UINT64_C(1000000)
#define MAX 16

/* --- the system --- */

static struct fake_process {
	int32_t  pid, parent;        /* pid 0: none */
	bool     has_ended, is_zombie; /* the second: and its parent has not waited for it */
	uint64_t cpu_ns, children_ns, started, code;
	uint32_t n_threads;          /* 0: as many as there are */
} processes[MAX];

static struct fake_thread {
	int32_t  pid, tid;           /* tid 0: none */
	char     name[SF_TASK_NAME];
	uint64_t cpu_ns;
} threads[MAX];

static uint64_t own_cpu_ns, scan_cost_ns, start_clock;
static uint64_t runs_ns; /* CPU time that the first thread of a process uses between the look at the process and the list of its threads */
static unsigned n_lists, n_names; /* of threads; readings of a name */
static char told[4096];
static uint64_t now_ns;
static uint64_t ran_ns; /* time goes on by as much as threads have run */

static struct fake_process *process_of(int32_t pid)
{
	for (unsigned i = 0; i < MAX; i++) {
		if (processes[i].pid == pid && !processes[i].has_ended)
			return &processes[i];
	}
	return NULL;
}

static struct fake_thread *thread_of(int32_t tid)
{
	for (unsigned i = 0; i < MAX; i++) {
		if (threads[i].tid == tid)
			return &threads[i];
	}
	return NULL;
}

static struct fake_process *add_process(int32_t pid, int32_t parent, uint64_t cpu_ns)
{
	for (unsigned i = 0; i < MAX; i++) {
		if (processes[i].pid)
			continue;
		processes[i] = (struct fake_process){ .pid = pid, .parent = parent, .cpu_ns = cpu_ns,
						      .started = (uint64_t)pid, .code = 1 };
		return &processes[i];
	}
	return NULL;
}

static struct fake_thread *add_thread(int32_t pid, int32_t tid, const char *name, uint64_t cpu_ns)
{
	for (unsigned i = 0; i < MAX; i++) {
		if (threads[i].tid)
			continue;
		threads[i] = (struct fake_thread){ .pid = pid, .tid = tid, .cpu_ns = cpu_ns };
		strcpy(threads[i].name, name);
		return &threads[i];
	}
	return NULL;
}

/* A thread runs: its CPU time is its process's, too. */
static void run(int32_t tid, uint64_t ns)
{
	struct fake_thread *thread = thread_of(tid);

	thread->cpu_ns += ns;
	process_of(thread->pid)->cpu_ns += ns;
	ran_ns += ns;
}

static void end_thread(int32_t tid)
{
	thread_of(tid)->tid = 0;
}

static void end_process(int32_t pid)
{
	for (unsigned i = 0; i < MAX; i++) {
		if (threads[i].pid == pid)
			threads[i].tid = 0;
	}
	process_of(pid)->has_ended = true;
}

static void end_unreaped(int32_t pid)
{
	end_process(pid);
	for (unsigned i = 0; i < MAX; i++) {
		if (processes[i].pid == pid) {
			processes[i].has_ended = false;
			processes[i].is_zombie = true;
		}
	}
}

uint64_t __wrap_sf_now_ns(void);
bool __wrap_sf_process_threads(int32_t pid, struct sf_ids *ret);
bool __wrap_sf_process_descendants(struct sf_ids *parents);
bool __wrap_sf_process_cpu(int32_t pid, uint64_t *ns_ret);
uint64_t __wrap_sf_process_children_cpu(int32_t pid);
bool __wrap_sf_process_program(int32_t pid, struct sf_program *ret);
uint64_t __wrap_sf_process_start_clock(void);
int32_t __wrap_sf_process_parent(int32_t pid);
bool __wrap_sf_task_open(int32_t pid, int32_t tid, struct sf_task *ret);
void __wrap_sf_task_close(struct sf_task *task);
bool __wrap_sf_task_name(int32_t pid, int32_t tid, char ret[SF_TASK_NAME]);
bool __wrap_sf_task_run(const struct sf_task *task, struct sf_task_run *ret);
bool __wrap_sf_task_look(const struct sf_task *task, struct sf_task_look *ret);
bool __wrap_sf_task_lives(int32_t pid, int32_t tid);
bool __wrap_sf_process_is_kernel(int32_t pid);
uint64_t __wrap_sf_raw_thread_cpu_ns(void);

uint64_t __wrap_sf_now_ns(void)
{
	return now_ns + ran_ns;
}

bool __wrap_sf_process_threads(int32_t pid, struct sf_ids *ret)
{
	n_lists++;
	if (process_of(pid) && thread_of(pid)) {
		process_of(pid)->cpu_ns += runs_ns;
		thread_of(pid)->cpu_ns += runs_ns;
	}
	for (unsigned i = 0; i < MAX; i++) {
		if (threads[i].tid && threads[i].pid == pid)
			assert_true(sf_vec_push(&ret->ids, threads[i].tid));
	}
	return process_of(pid);
}

static bool is_among(const struct sf_ids *ids, int32_t pid)
{
	for (size_t i = 0; i < ids->ids.n; i++) {
		if (ids->ids.items[i] == pid)
			return true;
	}
	return false;
}

bool __wrap_sf_process_descendants(struct sf_ids *parents)
{
	for (unsigned i = 0; i < MAX; i++) {
		if (processes[i].pid && !processes[i].has_ended && is_among(parents, processes[i].parent) &&
		    !is_among(parents, processes[i].pid))
			assert_true(sf_vec_push(&parents->ids, processes[i].pid));
	}
	return true;
}

bool __wrap_sf_process_cpu(int32_t pid, uint64_t *ns_ret)
{
	const struct fake_process *process = process_of(pid);

	if (process)
		*ns_ret = process->cpu_ns;
	return process;
}

uint64_t __wrap_sf_process_children_cpu(int32_t pid)
{
	const struct fake_process *process = process_of(pid);

	return process ? process->children_ns : 0;
}

bool __wrap_sf_process_program(int32_t pid, struct sf_program *ret)
{
	const struct fake_process *process = process_of(pid);
	uint32_t n = 0;

	for (unsigned i = 0; i < MAX; i++)
		n += threads[i].tid && threads[i].pid == pid;
	if (process)
		*ret = (struct sf_program){ .started = process->started, .code = process->code,
					    .n_threads = process->n_threads ? process->n_threads : n };
	own_cpu_ns += scan_cost_ns;
	return process && !process->is_zombie;
}

uint64_t __wrap_sf_process_start_clock(void)
{
	return start_clock;
}

int32_t __wrap_sf_process_parent(int32_t pid)
{
	return process_of(pid) ? process_of(pid)->parent : 0;
}

bool __wrap_sf_task_open(int32_t pid, int32_t tid, struct sf_task *ret)
{
	*ret = SF_TASK_CLOSED(pid, tid);
	return thread_of(tid);
}

void __wrap_sf_task_close(struct sf_task *task)
{
	(void)task;
}

bool __wrap_sf_task_name(int32_t pid, int32_t tid, char ret[SF_TASK_NAME])
{
	const struct fake_thread *thread = thread_of(tid);

	(void)pid;
	n_names++;
	if (thread)
		memcpy(ret, thread->name, SF_TASK_NAME);
	return thread;
}

bool __wrap_sf_task_run(const struct sf_task *task, struct sf_task_run *ret)
{
	const struct fake_thread *thread = thread_of(task->tid);

	if (thread)
		*ret = (struct sf_task_run){ .cpu_ns = thread->cpu_ns, .switches = thread->cpu_ns };
	return thread;
}

bool __wrap_sf_task_look(const struct sf_task *task, struct sf_task_look *ret)
{
	*ret = (struct sf_task_look){ .state = SF_STATE_RUNNING };
	return thread_of(task->tid);
}

bool __wrap_sf_task_lives(int32_t pid, int32_t tid)
{
	(void)pid;
	return thread_of(tid);
}

bool __wrap_sf_process_is_kernel(int32_t pid)
{
	(void)pid;
	return false;
}

uint64_t __wrap_sf_raw_thread_cpu_ns(void)
{
	return own_cpu_ns;
}

/* --- the relay --- */

void __wrap_sf_relay_process(struct sf_relay *relay, int32_t pid, int32_t parent);
void __wrap_sf_relay_process_forked(struct sf_relay *relay, int32_t pid, int32_t parent);
void __wrap_sf_relay_process_end(struct sf_relay *relay, int32_t pid);
void __wrap_sf_relay_process_end(struct sf_relay *relay, int32_t pid)
{
	(void)relay, (void)pid;
}

void __wrap_sf_relay_process_name(struct sf_relay *relay, int32_t pid, int32_t parent, const char *name);
void __wrap_sf_relay_again(struct sf_relay *relay, const struct sf_thread *thread, uint64_t time_ns,
			   const struct sf_weight *weight);
void __wrap_sf_relay_thread(struct sf_relay *relay, const struct sf_thread *thread, uint64_t time_ns);
void __wrap_sf_relay_thread_end(struct sf_relay *relay, struct sf_thread *thread, uint64_t time_ns, enum sf_loss cause);
void __wrap_sf_relay_loss(struct sf_relay *relay, const struct sf_thread *thread, enum sf_loss cause,
			  const struct sf_weight *weight);

static uint64_t last_end_ns, last_again_ns;

static __attribute__((format(printf, 1, 2))) void tell(const char *format, ...)
{
	const size_t n = strlen(told);
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(told + n, sizeof(told) - n, format, arguments);
	va_end(arguments);
}

void __wrap_sf_relay_process(struct sf_relay *relay, int32_t pid, int32_t parent)
{
	(void)relay;
	tell("process %d of %d\n", pid, parent);
}

void __wrap_sf_relay_process_forked(struct sf_relay *relay, int32_t pid, int32_t parent)
{
	(void)relay;
	tell("forked %d of %d\n", pid, parent);
}

void __wrap_sf_relay_process_name(struct sf_relay *relay, int32_t pid, int32_t parent, const char *name)
{
	(void)relay, (void)parent;
	tell("name %d %s\n", pid, name);
}

void __wrap_sf_relay_again(struct sf_relay *relay, const struct sf_thread *thread, uint64_t time_ns,
			   const struct sf_weight *weight)
{
	(void)relay;
	last_again_ns = time_ns;
	tell("again %u: cpu %llu us, %u ticks\n", thread->serial, (unsigned long long)weight->cpu_ns / 1000, weight->ticks);
}

void __wrap_sf_relay_thread(struct sf_relay *relay, const struct sf_thread *thread, uint64_t time_ns)
{
	(void)relay, (void)time_ns;
	tell("thread %u: %d %s\n", thread->serial, thread->task.tid, thread->name);
}

void __wrap_sf_relay_thread_end(struct sf_relay *relay, struct sf_thread *thread, uint64_t time_ns, enum sf_loss cause)
{
	(void)relay, (void)cause;
	last_end_ns = time_ns;
	tell("end %u: %llu us\n", thread->serial,
	     (unsigned long long)(thread->run.cpu_ns - thread->first_cpu_ns) / 1000);
	sf_thread_destroy(thread);
}

void __wrap_sf_relay_loss(struct sf_relay *relay, const struct sf_thread *thread, enum sf_loss cause,
			  const struct sf_weight *weight)
{
	(void)relay;
	tell("%s %u: cpu %llu us, wall %llu us, %u ticks\n", sf_loss_word(cause),
	     thread ? thread->serial : 0, (unsigned long long)weight->cpu_ns / 1000,
	     (unsigned long long)weight->wall_ns / 1000, weight->ticks);
	assert_true(cause == SF_LOSS_GONE || cause == SF_LOSS_UNSEEN || cause == SF_LOSS_REST);
}

static void expect(const char *expected)
{
	assert_string_equal(told, expected);
	told[0] = 0;
}

/* --- the watch --- */

static struct sf_capture_options options;
static struct sf_watch watch;

/* Process 40 of 1, with thread 40, 100 times a second. */
static int set_up(void **state)
{
	(void)state;
	memset(processes, 0, sizeof(processes));
	memset(threads, 0, sizeof(threads));
	memset(&watch, 0, sizeof(watch));
	own_cpu_ns = scan_cost_ns = runs_ns = 0;
	start_clock = 1000;
	told[0] = 0;
	now_ns = 1000 * MS;
	options = (struct sf_capture_options){ .pid = 40, .rate_mhz = 100000 };
	add_process(40, 1, 0);
	add_thread(40, 40, "main", 0);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	sf_watch_end(&watch, now_ns);
	sf_watch_close(&watch);
	return 0;
}

static void open_watch(void)
{
	struct sf_error err = { 0 };

	if (!sf_watch_open(&watch, &options, &err))
		fail_msg("%s", err.text);
	assert_true(sf_watch_scan(&watch, now_ns));
	told[0] = 0;
}

/* So much later; every scan is due by then. */
static bool scan_after(uint64_t ms)
{
	now_ns += ms * MS;
	return sf_watch_scan(&watch, now_ns);
}

static void look_at(int32_t tid)
{
	assert_true(sf_thread_look(sf_watch_find(&watch, tid), now_ns));
}

/* A thread of process 40 that the watch has found. */
static struct sf_thread *begin_thread(int32_t tid)
{
	add_thread(40, tid, "b", 0);
	return sf_watch_add_thread(&watch, 40, tid, now_ns);
}

static void what_comes_and_goes_is_told(void **state)
{
	struct sf_error err;
	(void)state;

	assert_true(sf_watch_open(&watch, &options, &err));
	assert_true(sf_watch_scan(&watch, now_ns));
	expect("process 40 of 0\nthread 1: 40 main\n");
	add_thread(40, 43, "b", 0);
	add_thread(40, 42, "a", 0);
	assert_true(scan_after(100));
	expect("thread 2: 43 b\nthread 3: 42 a\n");
	end_thread(43);
	assert_true(scan_after(100));
	expect("end 2: 0 us\n");
	end_process(40);
	assert_false(scan_after(100));
	expect("end 3: 0 us\nend 1: 0 us\n");
}

/* Several processes at once: the watch goes on until the last of them has ended. */
static void several_processes_are_watched(void **state)
{
	static const int32_t more[] = { 50, 60 };
	struct sf_error err;

	(void)state;
	add_process(50, 1, 0);
	add_thread(50, 50, "b", 0);
	add_process(60, 1, 0);
	add_thread(60, 60, "c", 0);
	options.more = more;
	options.n_more = 2;
	assert_true(sf_watch_open(&watch, &options, &err));
	assert_true(sf_watch_scan(&watch, now_ns));
	expect("process 60 of 0\nprocess 50 of 0\nprocess 40 of 0\nthread 1: 40 main\nthread 2: 50 b\nthread 3: 60 c\n");
	end_process(40);
	assert_true(scan_after(100));
	expect("end 1: 0 us\n");
	end_process(60);
	assert_true(scan_after(100));
	end_process(50);
	assert_false(scan_after(100));
	expect("end 3: 0 us\nend 2: 0 us\n");
}

/* A chosen process with a chosen ancestor: its CPU time, which is in that of the ancestor's children, was seen. */
static void a_chosen_child_is_not_unseen(void **state)
{
	static const int32_t more[] = { 50 };

	(void)state;
	add_process(50, 40, 0);
	add_thread(50, 50, "b", 0);
	options.more = more;
	options.n_more = 1;
	options.children = true;
	open_watch();
	run(50, 80 * MS);
	look_at(50);
	sf_thread_take_awake(sf_watch_find(&watch, 50), true, 10 * MS);
	scan_after(100);
	end_process(50);
	process_of(40)->children_ns = 120 * MS;
	scan_after(100);
	sf_watch_end(&watch, now_ns);
	expect("end 2: 80000 us\nend 1: 0 us\nunseen 0: cpu 40000 us, wall 0 us, 4 ticks\n");
}

static void threads_are_found_by_id(void **state)
{
	static const int32_t tids[] = { 70, 45, 60, 41, 99 };
	(void)state;

	for (unsigned i = 0; i < 5; i++)
		add_thread(40, tids[i], "x", 0);
	open_watch();
	for (unsigned i = 0; i < 5; i++)
		assert_int_equal(sf_watch_find(&watch, tids[i])->task.tid, tids[i]);
	assert_int_equal(sf_watch_find(&watch, 40)->task.tid, 40);
	assert_null(sf_watch_find(&watch, 39));
	assert_null(sf_watch_find(&watch, 46));
	assert_null(sf_watch_find(&watch, 100));
	end_thread(60);
	add_thread(40, 44, "y", 0);
	run(40, 1);
	scan_after(100);
	assert_null(sf_watch_find(&watch, 60));
	assert_int_equal(sf_watch_find(&watch, 44)->task.tid, 44);
	assert_int_equal(sf_watch_find(&watch, 99)->task.tid, 99);
}

/* --- CPU time that ends in no sample --- */

/* CPU time of a thread since its last sample is lost with the thread, and is a loss. */
static void a_thread_that_ends_after_its_last_sample(void **state)
{
	(void)state;
	add_thread(40, 41, "b", 70 * MS); /* used before it came into sight: no loss of ours */
	open_watch();
	now_ns += 20 * MS;
	run(41, 14 * MS);
	look_at(41);
	sf_thread_take_awake(sf_watch_find(&watch, 41), true, 10 * MS);
	now_ns += 30 * MS;
	run(41, 25 * MS);
	look_at(41);
	end_thread(41);
	scan_after(0);
	scan_after(100);
	expect("gone 2: cpu 25000 us, wall 30000 us, 3 ticks\nend 2: 39000 us\n");
}

/* Its counts are read once more, if they still are there. */
static void the_last_counts_are_read(void **state)
{
	(void)state;
	open_watch();
	run(40, 8 * MS);
	sf_watch_end(&watch, now_ns);
	expect("rest 1: cpu 8000 us, wall 0 us, 1 ticks\nend 1: 8000 us\n");
}

static void less_than_a_tick_is_lost_too(void **state)
{
	(void)state;
	open_watch();
	run(40, 4 * MS);
	look_at(40);
	sf_watch_find(&watch, 40)->account.awake_ns = -5;
	sf_watch_end(&watch, now_ns);
	expect("rest 1: cpu 4000 us, wall 0 us, 0 ticks\nend 1: 4000 us\n");
}

/* A thread that was about to be held has a tick in any case. */
static void a_tick_under_way_is_lost(void **state)
{
	(void)state;
	open_watch();
	run(40, 4 * MS);
	sf_watch_find(&watch, 40)->hold.is_requested = true;
	sf_watch_end(&watch, now_ns);
	expect("rest 1: cpu 4000 us, wall 0 us, 1 ticks\nend 1: 4000 us\n");
	sf_watch_close(&watch);
	memset(&watch, 0, sizeof(watch));
	open_watch();
	run(40, 25 * MS);
	sf_watch_find(&watch, 40)->hold.is_requested = true;
	sf_watch_end(&watch, now_ns);
	expect("rest 1: cpu 25000 us, wall 0 us, 3 ticks\nend 1: 25000 us\n");
}

/* CPU time before the start is none of the recording's, neither a thread's nor a process's. */
static void time_before_the_start_does_not_count(void **state)
{
	(void)state;
	process_of(40)->cpu_ns = 3600 * MS;
	thread_of(40)->cpu_ns = 3000 * MS;
	open_watch();
	process_of(40)->cpu_ns += 320 * MS; /* of threads that came and went between two scans */
	scan_after(100);
	end_process(40);
	scan_after(100);
	expect("end 1: 0 us\nunseen 0: cpu 320000 us, wall 0 us, 32 ticks\n");
}

/* CPU time of watched threads is not unseen: of those that are there, and of those that have ended. */
/*
 * A thread that is found after the first list has begun since: all its CPU time counts. Not where some could not be
 * watched before.
 */
static void a_later_thread_counts_from_its_start(void **state)
{
	(void)state;
	open_watch();
	add_thread(40, 41, "b", 0);
	run(41, 8 * MS);
	scan_after(100);
	assert_int_equal(sf_watch_find(&watch, 41)->account.cpu_ns, 8 * MS);
	watch.most_without_files = 1;
	add_thread(40, 42, "c", 0);
	run(42, 8 * MS);
	scan_after(100);
	assert_int_equal(sf_watch_find(&watch, 42)->account.cpu_ns, 0);
}

/* Of a command that was launched all counts since it was chosen, however late its first scan is. */
static void a_launched_command_counts_from_its_start(void **state)
{
	struct sf_error err = { 0 };

	(void)state;
	options.child = 40;
	run(40, 3 * MS);
	assert_true(sf_watch_open(&watch, &options, &err));
	run(40, 20 * MS);
	add_thread(40, 41, "b", 0);
	run(41, 8 * MS);
	process_of(40)->cpu_ns += 30 * MS; /* of a thread that has ended */
	assert_true(sf_watch_scan(&watch, now_ns));
	assert_int_equal(sf_watch_find(&watch, 40)->account.cpu_ns, 20 * MS);
	assert_int_equal(sf_watch_find(&watch, 41)->account.cpu_ns, 8 * MS);
	told[0] = 0;
	sf_watch_end(&watch, now_ns);
	expect("rest 2: cpu 8000 us, wall 8000 us, 1 ticks\nend 2: 8000 us\nrest 1: cpu 20000 us, wall 20000 us, 2 ticks\nend 1: 20000 us\n"
	       "unseen 0: cpu 30000 us, wall 0 us, 3 ticks\n");
}

/* The kernel's record of a thread's end has its CPU time since the last look. */
static void the_record_of_an_end_counts(void **state)
{
	(void)state;
	add_thread(40, 41, "b", 0);
	open_watch();
	run(41, 4 * MS);
	look_at(41);
	sf_watch_find(&watch, 41)->ended_cpu_ns = 9 * MS;
	end_thread(41);
	scan_after(100);
	expect("gone 2: cpu 9000 us, wall 5000 us, 1 ticks\nend 2: 9000 us\n");
}

static void what_was_seen_is_not_unseen(void **state)
{
	(void)state;
	process_of(40)->cpu_ns = 500 * MS;
	thread_of(40)->cpu_ns = 200 * MS;
	add_thread(40, 41, "b", 300 * MS);
	open_watch();
	run(40, 50 * MS);
	run(41, 70 * MS);
	look_at(40);
	look_at(41);
	sf_watch_find(&watch, 40)->account.cpu_ns = sf_watch_find(&watch, 41)->account.cpu_ns = 0; /* in samples */
	end_thread(41);
	scan_after(100);
	process_of(40)->cpu_ns += 30 * MS;
	scan_after(100);
	sf_watch_end(&watch, now_ns);
	expect("end 2: 70000 us\nend 1: 50000 us\nunseen 0: cpu 30000 us, wall 0 us, 3 ticks\n");
}

static void a_millisecond_is_no_loss(void **state)
{
	(void)state;
	open_watch();
	process_of(40)->cpu_ns += MS;
	sf_watch_end(&watch, now_ns);
	expect("end 1: 0 us\n");
	sf_watch_close(&watch);
	memset(&watch, 0, sizeof(watch));
	open_watch();
	process_of(40)->cpu_ns += MS + 1000;
	sf_watch_end(&watch, now_ns);
	expect("end 1: 0 us\nunseen 0: cpu 1001 us, wall 0 us, 0 ticks\n");
}

/* A process that has ended is not there to be read: its last scan counts. */
static void the_last_scan_of_a_process_counts(void **state)
{
	(void)state;
	open_watch();
	process_of(40)->cpu_ns += 40 * MS;
	scan_after(20);
	process_of(40)->cpu_ns += 40 * MS;
	end_process(40);
	scan_after(20);
	expect("end 1: 0 us\nunseen 0: cpu 40000 us, wall 0 us, 4 ticks\n");
}

/* --- names --- */

static void only_threads_with_the_name_are_watched(void **state)
{
	(void)state;
	options.threads = "^b";
	add_thread(40, 41, "b1", 0);
	open_watch();
	assert_false(sf_watch_find(&watch, 40)->watched);
	assert_true(sf_watch_find(&watch, 41)->watched);
	run(40, 20 * MS);
	run(41, 30 * MS);
	process_of(40)->cpu_ns += 500 * MS; /* no name of those is there */
	sf_watch_end(&watch, now_ns);
	expect("rest 2: cpu 30000 us, wall 0 us, 3 ticks\nend 2: 30000 us\nend 1: 0 us\n");
}

static void another_name_is_seen(void **state)
{
	(void)state;
	options.threads = "^b";
	open_watch();
	strcpy(thread_of(40)->name, "both");
	for (unsigned i = 0; i < 32; i++)
		scan_after(20);
	expect("thread 1: 40 both\n");
	assert_true(sf_watch_find(&watch, 40)->watched);
	strcpy(thread_of(40)->name, "other");
	run(40, 1);
	for (unsigned i = 0; i < 32; i++)
		scan_after(20);
	expect("thread 1: 40 other\n");
	assert_false(sf_watch_find(&watch, 40)->watched);
}

/* A thread names itself when it begins, which may be after it was met. */
static void the_name_of_a_new_thread_is_read_soon(void **state)
{
	(void)state;
	open_watch();
	scan_after(20);
	for (int32_t tid = 41; tid <= 44; tid++)
		add_thread(40, tid, "process", 0);
	run(40, 1);
	scan_after(20);
	expect("thread 2: 41 process\nthread 3: 42 process\nthread 4: 43 process\nthread 5: 44 process\n");
	for (int32_t tid = 41; tid <= 44; tid++)
		strcpy(thread_of(tid)->name, "worker");
	run(40, 1);
	scan_after(20);
	expect("thread 2: 41 worker\nthread 3: 42 worker\nthread 4: 43 worker\nthread 5: 44 worker\n");
	n_names = 0;
	for (const uint64_t first = watch.n_scans; watch.n_scans < first + 32;) {
		run(40, 1);
		scan_after(200);
	}
	assert_in_range(n_names, 5 + 4 * 4, 5 + 5 * 4); /* each in turn; those of new ones after 2, 4, 8 and 16 scans */
}

/* Only a thread that runs can rename itself or another one. Afterwards each name is read once. */
static void names_are_not_read_while_none_runs(void **state)
{
	(void)state;
	open_watch();
	for (unsigned i = 0; i < 64; i++)
		scan_after(20);
	n_names = 0;
	for (unsigned i = 0; i < 64; i++)
		scan_after(20);
	assert_int_equal(n_names, 0);
	run(40, 1);
	for (unsigned i = 0; i < 64; i++)
		scan_after(20);
	assert_int_equal(n_names, 1);
}

static void a_bad_expression_is_refused(void **state)
{
	struct sf_error err = { 0 };
	(void)state;

	options.threads = "(";
	assert_false(sf_watch_open(&watch, &options, &err));
	assert_int_equal(err.code, SF_E_INPUT);
	assert_non_null(strstr(err.text, "'('"));
}

/* --- processes --- */

static void another_program_is_told(void **state)
{
	(void)state;
	add_thread(40, 41, "b", 0);
	open_watch();
	process_of(40)->cpu_ns += 60 * MS;
	scan_after(20);
	process_of(40)->code = 2;
	end_thread(41); /* an exec ends all threads but one; here others came at once */
	add_thread(40, 42, "c", 0);
	scan_after(20);
	expect("process 40 of 0\nthread 3: 42 c\nend 2: 0 us\n");
	sf_watch_end(&watch, now_ns);
	expect("end 3: 0 us\nend 1: 0 us\nunseen 0: cpu 60000 us, wall 0 us, 6 ticks\n"); /* from its first program */
}

/* It ends: its memory is gone, and it is there for a moment more. */
static void a_process_without_memory_runs_no_other_program(void **state)
{
	(void)state;
	add_thread(40, 41, "b", 0);
	open_watch();
	process_of(40)->code = 0;
	scan_after(20);
	expect("");
	process_of(40)->code = 1;
	scan_after(20);
	expect("");
	sf_watch_end(&watch, now_ns);
	told[0] = 0;
}

static void a_reused_id_is_another_process(void **state)
{
	(void)state;
	options.children = true;
	open_watch();
	process_of(40)->started = 777;
	process_of(40)->children_ns = 500 * MS; /* the other one's */
	assert_false(scan_after(20));
	expect("end 1: 0 us\n");
}

static void children_are_followed(void **state)
{
	(void)state;
	options.children = true;
	open_watch();
	add_process(50, 40, 0);
	add_thread(50, 50, "child", 0);
	add_process(60, 50, 0);
	add_thread(60, 60, "grandchild", 0);
	add_process(70, 1, 0); /* nobody's of ours */
	add_thread(70, 70, "other", 0);
	scan_after(100);
	expect("process 60 of 50\nprocess 50 of 40\nthread 2: 50 child\nthread 3: 60 grandchild\n");
	end_process(50);
	scan_after(100);
	expect("end 2: 0 us\n");
	end_process(40);
	end_process(60);
	assert_false(scan_after(100));
}

/* New children are looked for every 2 ms, and what was found is looked at in the same scan. */
static void a_child_is_met_at_once(void **state)
{
	(void)state;
	options.children = true;
	open_watch();
	add_process(50, 40, 0);
	add_thread(50, 50, "child", 0);
	scan_after(1);
	expect("");
	scan_after(1);
	expect("process 50 of 40\nthread 2: 50 child\n");
}

/* A thread's id that another process's thread has by now: the one ends, the other begins. */
static void an_id_of_a_thread_is_used_again(void **state)
{
	(void)state;
	options.children = true;
	add_thread(40, 41, "b", 0);
	add_process(50, 40, 0);
	add_thread(50, 50, "child", 0);
	open_watch();
	scan_after(100);
	told[0] = 0;
	end_thread(41);
	add_thread(50, 41, "again", 0);
	run(50, 1);
	scan_after(100);
	expect("end 2: 0 us\n");
	scan_after(100);
	expect("thread 4: 41 again\n");
}

static void without_children_none_is_followed(void **state)
{
	(void)state;
	open_watch();
	add_process(50, 40, 0);
	add_thread(50, 50, "child", 0);
	process_of(40)->children_ns = 900 * MS;
	scan_after(100);
	sf_watch_end(&watch, now_ns);
	expect("end 1: 0 us\n");
}

/* Children that came and went before anybody saw them: the first process's clock for those it waited for has their time. */
static void unseen_children_are_counted(void **state)
{
	(void)state;
	options.children = true;
	process_of(40)->children_ns = 5000 * MS; /* before the start */
	open_watch();
	add_process(50, 40, 0);
	add_thread(50, 50, "child", 0);
	scan_after(100);
	run(50, 300 * MS);
	look_at(50);
	sf_watch_find(&watch, 50)->account.cpu_ns = 0; /* in samples */
	scan_after(100);
	end_process(50);
	scan_after(100);
	process_of(40)->children_ns += 300 * MS + 80 * MS;
	sf_watch_end(&watch, now_ns);
	expect("process 50 of 40\nthread 2: 50 child\nend 2: 300000 us\nend 1: 0 us\n"
	       "unseen 0: cpu 80000 us, wall 0 us, 8 ticks\n");
}

/* A child that ends while the recording is made ready had its life before, and so had one whose parent ends later. */
static void children_before_the_first_look_do_not_count(void **state)
{
	struct sf_error err;
	(void)state;

	options.children = true;
	add_process(50, 40, 0);
	add_thread(50, 50, "child", 0);
	process_of(50)->children_ns = 300 * MS;
	assert_true(sf_watch_open(&watch, &options, &err));
	process_of(40)->children_ns = 700 * MS;
	assert_true(sf_watch_scan(&watch, now_ns));
	told[0] = 0;
	end_process(50);
	scan_after(100);
	process_of(40)->children_ns += 300 * MS;
	sf_watch_end(&watch, now_ns);
	expect("end 2: 0 us\nend 1: 0 us\n");
}

/* However late a search finds a child: all counts if it began since the first scan, and nothing of before it otherwise. */
static void a_child_counts_from_its_start(void **state)
{
	(void)state;
	options.children = true;
	open_watch();
	add_process(50, 40, 70 * MS + 30 * MS)->started = start_clock; /* 30 ms are of a thread that has ended */
	add_thread(50, 50, "young", 70 * MS);
	add_process(60, 40, 500 * MS)->started = start_clock - 1; /* the first search passed over it */
	add_thread(60, 60, "old", 500 * MS);
	scan_after(100);
	assert_int_equal(sf_watch_find(&watch, 50)->account.cpu_ns, 70 * MS);
	assert_int_equal(sf_watch_find(&watch, 60)->account.cpu_ns, 0);
	told[0] = 0;
	sf_watch_end(&watch, now_ns);
	expect("end 3: 0 us\nrest 2: cpu 70000 us, wall 70000 us, 7 ticks\nend 2: 70000 us\nunseen 0: cpu 30000 us, wall 0 us, 3 ticks\n"
	       "end 1: 0 us\n");
}

/* A launched command's children count, however late its first scan is. */
static void children_of_a_launched_command_count(void **state)
{
	(void)state;
	options.children = true;
	options.child = 40;
	add_process(50, 40, 70 * MS)->started = start_clock - 1;
	add_thread(50, 50, "child", 70 * MS);
	open_watch();
	assert_int_equal(sf_watch_find(&watch, 50)->account.cpu_ns, 70 * MS);
}

/* Until its parent waits for it, a child that has ended is among the children. */
static void an_end_counts_once(void **state)
{
	(void)state;
	options.children = true;
	open_watch();
	add_process(50, 40, 0);
	add_thread(50, 50, "seen", 0);
	scan_after(100);
	run(50, 20 * MS);
	look_at(50);
	end_unreaped(50);
	add_process(60, 40, 80 * MS); /* it came and went between two searches */
	end_unreaped(60);
	told[0] = 0;
	scan_after(100);
	expect("unseen 0: cpu 80000 us, wall 0 us, 8 ticks\ngone 2: cpu 20000 us, wall 0 us, 2 ticks\nend 2: 20000 us\n");
	scan_after(100);
	scan_after(100);
	expect("");
	process_of(50)->has_ended = true;
	add_process(50, 40, 0);   /* another one has its id */
	add_thread(50, 50, "again", 0);
	scan_after(100);
	expect("process 50 of 40\nthread 3: 50 again\n");
}

/* What ended before the recording is not counted, nor where the engine has records of ends. */
static void what_ended_before_is_not_counted(void **state)
{
	struct sf_error err = { 0 };

	(void)state;
	options.children = true;
	add_process(50, 40, 900 * MS);
	end_unreaped(50);
	assert_true(sf_watch_open(&watch, &options, &err));
	assert_true(sf_watch_scan(&watch, now_ns));
	scan_after(100);
	expect("process 40 of 0\nthread 1: 40 main\n");
	told[0] = 0;
	watch.keeps_ended = true;
	add_process(60, 40, 900 * MS);
	end_unreaped(60);
	scan_after(100);
	scan_after(100);
	expect("");
}

static void that_clock_s_steps_are_no_loss(void **state)
{
	(void)state;
	options.children = true;
	open_watch();
	process_of(40)->children_ns = 20 * MS;
	sf_watch_end(&watch, now_ns);
	expect("end 1: 0 us\n");
	sf_watch_close(&watch);
	memset(&watch, 0, sizeof(watch));
	process_of(40)->children_ns = 0;
	open_watch();
	process_of(40)->children_ns = 20 * MS + 1;
	sf_watch_end(&watch, now_ns);
	expect("end 1: 0 us\nunseen 0: cpu 20000 us, wall 0 us, 2 ticks\n");
}

/* --- when --- */

/* A thread in the place of another: their number is the same, and after 50 ms they are listed all the same. */
static void a_replaced_thread_is_seen_after_a_while(void **state)
{
	(void)state;
	add_thread(40, 41, "b", 0);
	open_watch();
	end_thread(41);
	add_thread(40, 42, "c", 0);
	run(40, 1);
	scan_after(49);
	expect("");
	scan_after(10);
	expect("thread 3: 42 c\nend 2: 0 us\n");
}

/* A thread is started by one that runs. */
static void threads_are_not_listed_while_none_runs(void **state)
{
	(void)state;
	open_watch();
	scan_after(100);
	n_lists = 0;
	for (unsigned i = 0; i < 10; i++)
		scan_after(100);
	assert_int_equal(n_lists, 0);
	run(40, 1);
	scan_after(100);
	assert_int_equal(n_lists, 1);
	add_thread(40, 41, "b", 0); /* the number of threads is another */
	scan_after(100);
	assert_int_equal(n_lists, 2);
}

/* One more is seen at the next scan, which is at most every 10 ms, and takes at most 1 % of a CPU. */
static void scans_have_their_time(void **state)
{
	(void)state;
	scan_cost_ns = 200000;
	open_watch();
	add_thread(40, 41, "b", 0);
	scan_after(19);
	expect("");
	scan_after(1);
	expect("thread 2: 41 b\n");
	scan_cost_ns = 0;
	scan_after(20);
	add_thread(40, 42, "c", 0);
	scan_after(9);
	expect("");
	scan_after(1);
	expect("thread 3: 42 c\n");
}

/* The process's clock shows more than its threads' that were looked at. */
static void a_thread_that_woke_unseen_is_noticed(void **state)
{
	(void)state;
	process_of(40)->cpu_ns = 700 * MS; /* of threads that have ended, too */
	add_thread(40, 41, "b", 0);
	open_watch();
	sf_watch_looked_at_all(&watch);
	assert_true(sf_watch_others_ran(&watch) <= 500000);
	run(41, 500000);
	assert_true(sf_watch_others_ran(&watch) <= 500000);
	run(41, 1);
	assert_true(sf_watch_others_ran(&watch) > 500000);
	look_at(41);
	assert_true(sf_watch_others_ran(&watch) <= 500000); /* its look explains it */
	run(40, MS);
	assert_true(sf_watch_others_ran(&watch) > 500000);
	sf_watch_looked_at_all(&watch);
	assert_true(sf_watch_others_ran(&watch) <= 500000);
	look_at(40); /* what its look explains is nobody else's from then on */
	assert_true(sf_watch_others_ran(&watch) <= 500000);
	run(41, 600000);
	assert_true(sf_watch_others_ran(&watch) > 500000);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

/* --- an engine that sees processes and threads begin --- */

/* A thread that is met counts from its first moment on, and is found by its id at once. */
static void a_thread_is_met(void **state)
{
	const struct sf_thread *thread;
	(void)state;

	open_watch();
	add_thread(40, 39, "new", 7 * MS);
	thread = sf_watch_add_thread(&watch, 40, 39, now_ns);
	assert_ptr_equal(sf_watch_find(&watch, 39), thread);
	assert_int_equal(sf_watch_find(&watch, 40)->task.tid, 40);
	assert_int_equal(thread->account.cpu_ns, 7 * MS);
	assert_int_equal(thread->first_cpu_ns, 0);
	expect("thread 2: 39 new\n");
	scan_after(100);
	expect("");
	sf_watch_rename(&watch, 39, "new", now_ns);
	sf_watch_rename(&watch, 88, "nobody", now_ns);
	expect("");
	sf_watch_rename(&watch, 39, "another-name-of-more", now_ns);
	expect("thread 2: 39 another-name-of\n");
}

/* One that has ended already has its process's name, and goes with the next list. */
static void an_ended_thread_is_met(void **state)
{
	(void)state;
	open_watch();
	sf_watch_exec(&watch, 40, "tool");
	expect("process 40 of 0\nname 40 tool\n");
	assert_non_null(sf_watch_add_thread(&watch, 40, 77, now_ns));
	expect("thread 2: 77 tool\n");
	scan_after(100);
	assert_null(sf_watch_find(&watch, 77));
	expect("end 2: 0 us\n");
}

/* A process that ended before it was looked at: it is told, again where it begins, with the name that its exec gave it. */
static void an_ended_process_is_met(void **state)
{
	(void)state;
	options.children = true;
	open_watch();
	sf_watch_add_process(&watch, 50, 40, "");
	sf_watch_add_process(&watch, 50, 40, "");
	sf_watch_fork(&watch, 50);
	sf_watch_exec(&watch, 50, "a-name-of-more-than-15");
	expect("process 50 of 40\nname 50 main\nforked 50 of 40\nprocess 50 of 40\nname 50 a-name-of-more-\n"); /* its parent's name at first */
	sf_watch_fork(&watch, 99);
	sf_watch_exec(&watch, 99, "nobody");
	expect("");
	scan_after(100);
	sf_watch_exec(&watch, 50, "late");
	expect("");
}

/*
 * All children of a batch of records are met before the first record is taken: only when each begins has its parent the
 * name by its exec, whether the child had ended when it was met or not.
 */
static void a_child_begins_with_its_parents_name(void **state)
{
	(void)state;
	options.children = true;
	open_watch();
	sf_watch_add_process(&watch, 50, 40, "");
	sf_watch_add_process(&watch, 51, 50, "");
	expect("process 50 of 40\nprocess 51 of 50\n");
	sf_watch_fork(&watch, 50);
	sf_watch_exec(&watch, 50, "tool");
	expect("name 50 main\nforked 50 of 40\nprocess 50 of 40\nname 50 tool\n");
	sf_watch_fork(&watch, 51);
	expect("name 51 tool\nforked 51 of 50\n");
	watch.processes.items[2].program.started = 1;
	sf_watch_exec(&watch, 50, "next");
	sf_watch_fork(&watch, 51);
	expect("process 50 of 40\nname 50 next\nname 51 next\nforked 51 of 50\n");
	sf_watch_add_process(&watch, 52, 77, "");         /* whose parent is not watched, */
	sf_watch_originates(&watch, 52, 50);              /* but an ancestor is */
	sf_watch_fork(&watch, 52);
	expect("process 52 of 77\nforked 52 of 50\nname 52 next\nforked 52 of 50\n");
	sf_watch_originates(&watch, 99, 50);
	expect("");
}

/* Where an engine has records of what a process did at last, they are read before it is ended. */
static void an_ended_process_is_kept_for_a_scan(void **state)
{
	(void)state;
	open_watch();
	watch.keeps_ended = true;
	end_process(40);
	assert_true(scan_after(100));
	assert_true(watch.has_kept);
	assert_int_equal(watch.processes.n, 1);
	expect("");
	assert_false(scan_after(100));
	assert_false(watch.has_kept);
	assert_int_equal(watch.processes.n, 0);
	expect("end 1: 0 us\n");
}

/* Where an engine has records of what a process did in the program before, they are read before the next one is told. */
static void an_exec_is_left_to_its_record(void **state)
{
	(void)state;
	watch.keeps_ended = true;
	open_watch();
	process_of(40)->code = 2;
	scan_after(100);
	expect("");
	sf_watch_exec(&watch, 40, "tool");
	expect("process 40 of 0\nname 40 tool\n");
	scan_after(100);
	expect("");
	process_of(40)->code = 3; /* and so is each later one */
	scan_after(100);
	expect("");
	scan_after(100); /* the record is lost */
	expect("process 40 of 0\n");
	scan_after(100);
	expect("");
}

/* Threads that have ended are kept in the same way. */
static void an_ended_thread_is_kept_for_a_scan(void **state)
{
	(void)state;
	add_thread(40, 41, "b", 0);
	open_watch();
	watch.keeps_ended = true;
	end_thread(41);
	scan_after(100);
	assert_true(watch.has_kept);
	assert_non_null(sf_watch_find(&watch, 41));
	expect("");
	scan_after(100);
	assert_null(sf_watch_find(&watch, 41));
	expect("end 2: 0 us\n");
}

/* Where the engine has records of all that begins, children are searched for once, and again when records were lost. */
static void children_come_by_records(void **state)
{
	(void)state;
	options.children = true;
	watch.keeps_ended = true;
	open_watch();
	add_process(50, 40, 0);
	scan_after(100);
	expect("");
	watch.knows_children = false;
	scan_after(100);
	expect("process 50 of 40\n");
}

/*
 * A scan has found the process, and some of its CPU time, before the record of its start is read. It has a whole
 * account all the same, once.
 */
static void a_process_that_a_scan_found_begins(void **state)
{
	(void)state;
	options.children = true;
	open_watch();
	add_process(50, 40, 70 * MS + 30 * MS); /* of a thread that has ended already */
	add_thread(50, 50, "b", 70 * MS);
	scan_after(100);
	run(50, 20 * MS);
	look_at(50);
	sf_watch_process_begins(&watch, 50);
	sf_watch_process_begins(&watch, 50);
	assert_int_equal(sf_watch_find(&watch, 50)->account.cpu_ns, 90 * MS);
	sf_watch_process_begins(&watch, 40);
	assert_int_equal(watch.processes.items[0].is_new, false); /* it was chosen: it ran before */
	add_thread(50, 51, "late", 0);
	run(51, 6 * MS);
	scan_after(100);
	assert_int_equal(sf_watch_find(&watch, 51)->account.cpu_ns, 6 * MS);
	told[0] = 0;
	end_process(50);
	scan_after(100);
	expect("gone 3: cpu 6000 us, wall 6000 us, 1 ticks\nend 3: 6000 us\n"
	       "gone 2: cpu 90000 us, wall 70000 us, 9 ticks\nend 2: 90000 us\nunseen 0: cpu 30000 us, wall 0 us, 3 ticks\n");
}

/*
 * The children's CPU time is compared when all that a scan finds to have ended are ended: here the last chosen process
 * is ended before its child.
 */
static void children_that_end_with_the_first_are_seen(void **state)
{
	static const int32_t more[] = { 45 };

	(void)state;
	options.children = true;
	options.more = more;
	options.n_more = 1;
	add_process(45, 1, 0);
	add_process(50, 45, 0);
	add_thread(50, 50, "b", 0);
	open_watch();
	run(50, 80 * MS);
	look_at(50);
	sf_thread_take_awake(sf_watch_find(&watch, 50), true, 10 * MS);
	end_process(40);
	scan_after(100);
	assert_int_equal(watch.processes.items[0].pid, 50);
	told[0] = 0;
	process_of(45)->children_ns = 80 * MS;
	end_process(50);
	sf_watch_end(&watch, now_ns);
	expect("end 2: 80000 us\n");
}

/* All of the machine without those that sleep: a process is not listed, and CPU time that no sample stands for is no loss. */
static void threads_are_known_by_their_samples(void **state)
{
	(void)state;
	options.pid = 0;
	options.all = true;
	open_watch();
	assert_int_equal(watch.processes.n, 0);
	sf_watch_add_process(&watch, 40, 1, "");
	assert_int_equal(sf_watch_add_thread(&watch, 40, 40, now_ns)->account.cpu_ns, 0);
	told[0] = 0;
	run(40, 50 * MS);
	look_at(40);
	scan_after(100);
	expect("");
	end_process(40);
	scan_after(100);
	expect("end 1: 0 us\n");
}

/* By the clocks of now, and not by those of the last scan. */
static void unseen_time_is_found_at_once(void **state)
{
	struct sf_unseen unseen;

	(void)state;
	open_watch();
	process_of(40)->cpu_ns += 30 * MS; /* of threads that came and went */
	sf_unseen_look(&watch, 4 * MS, &unseen);
	assert_int_equal(unseen.cpu_ns, 30 * MS);
	assert_int_equal(unseen.unseen_ns, 30 * MS);
	/* A thread that ends without a sample is known, and as unseen. */
	add_thread(40, 41, "b", 0);
	scan_after(100);
	run(41, 4 * MS);
	look_at(41);
	end_thread(41);
	for (int i = 0; i < 2; i++) { /* before a scan finds its end, and after that */
		sf_unseen_look(&watch, 4 * MS, &unseen);
		assert_int_equal(unseen.cpu_ns, 34 * MS);
		assert_int_equal(unseen.unseen_ns, 34 * MS);
		scan_after(100);
	}
}

/* Of a busy process a look at each of many threads takes milliseconds, in which all of them run. */
static void what_threads_use_before_they_are_found_is_not_unseen(void **state)
{
	struct sf_unseen unseen;

	(void)state;
	runs_ns = 20 * MS;
	open_watch();
	sf_unseen_look(&watch, 4 * MS, &unseen);
	assert_int_equal(unseen.unseen_ns, 0);
	run(40, 5 * MS);
	sf_unseen_look(&watch, 4 * MS, &unseen);
	assert_int_equal(unseen.cpu_ns, 5 * MS);
	assert_int_equal(unseen.unseen_ns, 0);
	told[0] = 0;
	sf_watch_end(&watch, now_ns);
	assert_null(strstr(told, "unseen"));
}

/* Of all threads, since the look before. */
static void switches_of_threads(void **state)
{
	struct sf_unseen unseen;

	(void)state;
	open_watch();
	add_thread(40, 41, "busy", 7 * MS);
	add_thread(40, 42, "napping", 0);
	scan_after(100);
	run(41, 13 * MS);
	run(42, 1 * MS);
	sf_unseen_look(&watch, 4 * MS, &unseen);
	assert_int_equal(unseen.switches, 14 * MS); /* as __wrap_sf_task_run has it; what was before it came into sight does not count */
	assert_int_equal(unseen.n_ran, 2);
	sf_unseen_look(&watch, 4 * MS, &unseen);
	assert_int_equal(unseen.switches, 0);
	thread_of(41)->cpu_ns -= 10 * MS; /* by an exec */
	sf_unseen_look(&watch, 4 * MS, &unseen);
	assert_int_equal(unseen.switches, 0);
	run(41, 2 * MS);
	sf_unseen_look(&watch, 4 * MS, &unseen);
	assert_int_equal(unseen.switches, 2 * MS);
	assert_int_equal(unseen.n_ran, 1);
}

/* CPU time of a thread since its last sample, if that is less than some ticks, is that sample's; more is a loss. */
static void the_rest_of_a_thread_is_its_last_sample_s(void **state)
{
	(void)state;
	open_watch();
	for (int32_t tid = 41; tid < 43; tid++) {
		add_thread(40, tid, "b", 0);
		sf_watch_add_thread(&watch, 40, tid, now_ns)->ran = true;
		run(tid, tid == 41 ? 4 * MS : 90 * MS);
		look_at(tid);
		end_thread(tid);
	}
	expect("thread 2: 41 b\nthread 3: 42 b\n");
	scan_after(100);
	expect("gone 3: cpu 90000 us, wall 0 us, 9 ticks\nend 3: 90000 us\nagain 2: cpu 4000 us, 1 ticks\nend 2: 4000 us\n");
}

/* Of a thread that is known by its samples only where it has one: the others are in these, but for what came before that. */
static void a_rest_of_one_that_is_known_by_samples(void **state)
{
	(void)state;
	open_watch();
	watch.by_samples = true;
	for (int32_t tid = 41; tid < 44; tid++) {
		struct sf_thread *thread = begin_thread(tid);

		thread->ran = thread->begun = tid == 41;
		thread->before_ns = tid == 43 ? 3 * MS : 0;
		run(tid, 4 * MS);
		look_at(tid);
		end_thread(tid);
	}
	watch.by_samples = false;
	expect("thread 2: 41 b\nthread 3: 42 b\nthread 4: 43 b\n");
	scan_after(100);
	expect("gone 4: cpu 3000 us, wall 0 us, 0 ticks\nend 4: 3000 us\nend 3: 0 us\nagain 2: cpu 4000 us, 1 ticks\nend 2: 4000 us\n");
}

/* Of those that live, and that are an engine's to sample each. */
static void time_of_threads_without_a_sample(void **state)
{
	struct sf_unseen unseen;

	(void)state;
	open_watch();
	for (int32_t tid = 41; tid < 45; tid++) {
		struct sf_thread *thread = begin_thread(tid);

		run(tid, 4 * MS);
		thread->ran = tid == 42;
		thread->by_samples = tid == 43;
		thread->watched = tid != 44;
	}
	sf_unseen_look(&watch, 4 * MS, &unseen);
	assert_int_equal(unseen.unsampled_ns, 4 * MS);
	sf_unseen_look(&watch, 4 * MS - 1, &unseen);
	assert_int_equal(unseen.unsampled_ns, 0);
}

/* Its ticks are those of its elapsed time: the thread waited for a CPU for most of it. Its CPU time is short, so it is no loss. */
static void a_rest_has_the_ticks_of_its_elapsed_time(void **state)
{
	(void)state;
	open_watch();
	begin_thread(41)->ran = true;
	run(41, 4 * MS);
	look_at(41);
	sf_watch_find(&watch, 41)->account.awake_ns = 75 * MS;
	end_thread(41);
	scan_after(100);
	expect("thread 2: 41 b\nagain 2: cpu 4000 us, 8 ticks\nend 2: 4000 us\n");
}

/* A tick has found that a thread is gone, and another one has its id by the scan. */
static void an_id_is_used_again(void **state)
{
	(void)state;
	open_watch();
	run(40, MS);
	begin_thread(41)->is_gone = true;
	scan_after(100);
	expect("thread 2: 41 b\nend 2: 0 us\n");
	run(40, MS);
	scan_after(100);
	expect("thread 3: 41 b\n");
}

/* Since its last sample it has waited for a CPU, and has got none. Nothing is said of a thread that was never seen to run. */
static void a_rest_may_be_elapsed_time_only(void **state)
{
	(void)state;
	open_watch();
	for (int32_t tid = 41; tid < 43; tid++) {
		struct sf_thread *thread = begin_thread(tid);

		thread->ran = tid == 41;
		look_at(tid);
		thread->account.awake_ns = 30 * MS;
		end_thread(tid);
	}
	scan_after(100);
	expect("thread 2: 41 b\nthread 3: 42 b\nend 3: 0 us\ngone 2: cpu 0 us, wall 30000 us, 3 ticks\nend 2: 0 us\n");
}

/* Of two that end at once, and use little, the one with a sample takes the time of the other, which ends first (unsampled.h). */
static void threads_that_end_at_once_share(void **state)
{
	(void)state;
	open_watch();
	for (int32_t tid = 41; tid < 43; tid++) {
		struct sf_thread *thread = begin_thread(tid);

		run(tid, 4 * MS);
		look_at(tid);
		thread->n_looks = 1;
		thread->looked_for_ns = 10 * MS;
		if (tid == 42) {
			sf_thread_take_awake(thread, true, 10 * MS);
			thread->ran = true;
			thread->n_ran = 1;
		}
		end_thread(tid);
	}
	expect("thread 2: 41 b\nthread 3: 42 b\n");
	scan_after(100);
	expect("end 2: 4000 us\nagain 3: cpu 4000 us, 1 ticks\nend 3: 4000 us\n");
}

/* A longer rest is its samples', too, if they stand for as much already: here of 60 ms. */
static void a_rest_is_not_longer_than_what_was_seen(void **state)
{
	(void)state;
	open_watch();
	for (int32_t tid = 41; tid < 43; tid++) {
		struct sf_thread *thread = begin_thread(tid);

		thread->ran = true;
		run(tid, 60 * MS);
		look_at(tid);
		sf_thread_take_awake(thread, true, 10 * MS);
		run(tid, tid == 41 ? 60 * MS : 61 * MS);
		look_at(tid);
		end_thread(tid);
	}
	expect("thread 2: 41 b\nthread 3: 42 b\n");
	scan_after(100);
	expect("gone 3: cpu 61000 us, wall 0 us, 6 ticks\nend 3: 121000 us\nagain 2: cpu 60000 us, 6 ticks\nend 2: 120000 us\n");
}

/* And time of which there were samples that the cost limit has passed over. */
static void a_rest_that_was_passed_over_is_no_loss(void **state)
{
	(void)state;
	open_watch();
	for (int32_t tid = 41; tid < 44; tid++) {
		struct sf_thread *thread = begin_thread(tid);

		thread->ran = tid != 43;
		thread->batch.passed_ns = tid == 42 ? 20 * MS : 90 * MS;
		run(tid, 90 * MS);
		look_at(tid);
		end_thread(tid);
	}
	expect("thread 2: 41 b\nthread 3: 42 b\nthread 4: 43 b\n");
	scan_after(100);
	expect("gone 4: cpu 90000 us, wall 0 us, 9 ticks\nend 4: 90000 us\ngone 3: cpu 90000 us, wall 0 us, 9 ticks\nend 3: 90000 us\n"
	       "again 2: cpu 90000 us, 9 ticks\nend 2: 90000 us\n");
}

/* Samples that were passed over show what a thread used at least since its last count. Not where its count at the end is known. */
static void what_was_passed_over_was_used(void **state)
{
	static const struct {
		uint64_t passed_ns, ended_cpu_ns;
		bool lives;
	} cases[] = { { 10 * MS, 0, false }, { 3 * MS, 0, false }, { 10 * MS, 5 * MS, false }, { 10 * MS, 0, true } };

	(void)state;
	open_watch();
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const int32_t tid = 41 + (int32_t)i;
		struct sf_thread *thread = begin_thread(tid);

		thread->ran = true;
		run(tid, 4 * MS);
		look_at(tid);
		thread->batch.passed_ns = cases[i].passed_ns;
		thread->ended_cpu_ns = cases[i].ended_cpu_ns;
		if (!cases[i].lives)
			end_thread(tid);
	}
	expect("thread 2: 41 b\nthread 3: 42 b\nthread 4: 43 b\nthread 5: 44 b\n");
	scan_after(100);
	expect("again 4: cpu 5000 us, 1 ticks\nend 4: 5000 us\nagain 3: cpu 4000 us, 1 ticks\nend 3: 4000 us\n"
	       "again 2: cpu 10000 us, 1 ticks\nend 2: 10000 us\n");
	sf_watch_end(&watch, now_ns);
	expect("end 1: 0 us\nagain 5: cpu 4000 us, 1 ticks\nend 5: 4000 us\n"); /* first those without a sample (unsampled.h) */
}

/*
 * Where sleeps are recorded: those that the cost limit has passed over are the last sample's, and so is the time without
 * records. Of a thread without such a sample they are a loss.
 */
static void sleeps_without_samples_are_the_last_one_s(void **state)
{
	(void)state;
	open_watch();
	options.blocked_rate_mhz = 20000;
	watch.recorded_until_ns = 1;
	for (int32_t tid = 41; tid < 43; tid++) {
		struct sf_thread *thread = begin_thread(tid);

		thread->sleeps.passed_ns = 90 * MS;
		thread->account.asleep_ns = 10 * (int64_t)MS;
		thread->sleeps.sampled_ns = tid == 41 ? MS : 0;
		end_thread(tid);
	}
	expect("thread 2: 41 b\nthread 3: 42 b\n");
	scan_after(100);
	expect("gone 3: cpu 0 us, wall 100000 us, 2 ticks\nend 3: 0 us\nagain 2: cpu 0 us, 2 ticks\nend 2: 0 us\n");
}

/*
 * Sleeps that are too short for a sample each are the last sample's, too, and so is one that goes on. A thread that has exited
 * does not sleep.
 */
static void short_sleeps_are_the_last_one_s(void **state)
{
	(void)state;
	open_watch();
	options.blocked_rate_mhz = 20000;
	watch.recorded_until_ns = now_ns + 90 * MS;
	for (int32_t tid = 41; tid < 44; tid++) {
		struct sf_thread *thread = begin_thread(tid);

		thread->sleeps.sampled_ns = MS;
		thread->sleeps.are_recorded = true;
		thread->sleeps.short_ns = tid == 41 ? 100 * MS : 0;
		thread->sleep.start_ns = tid == 41 ? 0 : now_ns - 10 * MS;
		thread->exited_ns = tid == 43 ? now_ns : 0;
		end_thread(tid);
	}
	expect("thread 2: 41 b\nthread 3: 42 b\nthread 4: 43 b\n");
	scan_after(100);
	expect("end 4: 0 us\nagain 3: cpu 0 us, 2 ticks\nend 3: 0 us\nagain 2: cpu 0 us, 2 ticks\nend 2: 0 us\n");
}

/* By the record of its exit, where there is one since it came into sight. What is left of its sleeps has that time, too. */
static void a_thread_ends_when_it_exited(void **state)
{
	uint64_t met_ns;

	(void)state;
	open_watch();
	options.blocked_rate_mhz = 20000;
	watch.recorded_until_ns = now_ns;
	met_ns = begin_thread(41)->sleeps.met_ns;
	begin_thread(42)->exited_ns = met_ns - 5 * MS;
	begin_thread(43)->exited_ns = met_ns + 5 * MS;
	sf_watch_find(&watch, 43)->sleeps.passed_ns = sf_watch_find(&watch, 43)->sleeps.sampled_ns = MS;
	now_ns += 20 * MS;
	sf_watch_end_thread(&watch, 3, now_ns);
	assert_int_equal(last_end_ns, met_ns + 5 * MS);
	assert_int_equal(last_again_ns, last_end_ns);
	sf_watch_end_thread(&watch, 2, now_ns);
	assert_int_equal(last_end_ns, now_ns);
	sf_watch_end_thread(&watch, 1, now_ns);
	assert_int_equal(last_end_ns, now_ns);
}

/*
 * A thread that slept at the last look: its last sample stands for the time until its end, but for CPU time since. Not
 * if it ran, has no sample of this sleep, or if sleeping threads are not sampled.
 */
static void a_sleep_lasts_to_the_end(void **state)
{
	(void)state;
	options.blocked_rate_mhz = 20000;
	open_watch();
	for (int32_t tid = 41; tid < 44; tid++) {
		struct sf_thread *thread = begin_thread(tid);

		thread->look.state = tid == 42 ? SF_STATE_RUNNING : SF_STATE_BLOCKED;
		thread->sampled = tid != 43;
	}
	run(41, 4 * MS);
	told[0] = 0;
	now_ns += 204 * MS;
	for (int32_t tid = 41; tid < 44; tid++)
		sf_watch_end_thread(&watch, 1, now_ns);
	expect("again 2: cpu 0 us, 4 ticks\ngone 2: cpu 4000 us, wall 4000 us, 0 ticks\nend 2: 4000 us\nend 3: 0 us\nend 4: 0 us\n");
	options.blocked_rate_mhz = 0;
	sf_watch_find(&watch, 40)->look.state = SF_STATE_BLOCKED;
	sf_watch_find(&watch, 40)->sampled = true;
	now_ns += 100 * MS;
	sf_watch_end_thread(&watch, 0, now_ns);
	expect("end 1: 0 us\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_thread_is_met),
		TEST(an_ended_thread_is_met),
		TEST(an_ended_process_is_met),
		TEST(a_child_begins_with_its_parents_name),
		TEST(an_ended_process_is_kept_for_a_scan),
		TEST(an_ended_thread_is_kept_for_a_scan),
		TEST(children_come_by_records),
		TEST(a_process_that_a_scan_found_begins),
		TEST(children_that_end_with_the_first_are_seen),
		TEST(threads_are_known_by_their_samples),
		TEST(unseen_time_is_found_at_once),
		TEST(what_threads_use_before_they_are_found_is_not_unseen),
		TEST(switches_of_threads),
		TEST(the_rest_of_a_thread_is_its_last_sample_s),
		TEST(a_rest_of_one_that_is_known_by_samples),
		TEST(time_of_threads_without_a_sample),
		TEST(a_rest_has_the_ticks_of_its_elapsed_time),
		TEST(a_rest_is_not_longer_than_what_was_seen),
		TEST(an_id_is_used_again),
		TEST(a_rest_may_be_elapsed_time_only),
		TEST(threads_that_end_at_once_share),
		TEST(a_rest_that_was_passed_over_is_no_loss),
		TEST(what_was_passed_over_was_used),
		TEST(sleeps_without_samples_are_the_last_one_s),
		TEST(short_sleeps_are_the_last_one_s),
		TEST(a_thread_ends_when_it_exited),
		TEST(a_sleep_lasts_to_the_end),
		TEST(what_comes_and_goes_is_told),
		TEST(several_processes_are_watched),
		TEST(a_chosen_child_is_not_unseen),
		TEST(threads_are_found_by_id),
		TEST(a_thread_that_ends_after_its_last_sample),
		TEST(the_last_counts_are_read),
		TEST(less_than_a_tick_is_lost_too),
		TEST(a_tick_under_way_is_lost),
		TEST(time_before_the_start_does_not_count),
		TEST(a_later_thread_counts_from_its_start),
		TEST(a_launched_command_counts_from_its_start),
		TEST(the_record_of_an_end_counts),
		TEST(what_was_seen_is_not_unseen),
		TEST(a_millisecond_is_no_loss),
		TEST(the_last_scan_of_a_process_counts),
		TEST(only_threads_with_the_name_are_watched),
		TEST(another_name_is_seen),
		TEST(the_name_of_a_new_thread_is_read_soon),
		TEST(names_are_not_read_while_none_runs),
		TEST(a_bad_expression_is_refused),
		TEST(another_program_is_told),
		TEST(an_exec_is_left_to_its_record),
		TEST(a_process_without_memory_runs_no_other_program),
		TEST(a_reused_id_is_another_process),
		TEST(children_are_followed),
		TEST(a_child_is_met_at_once),
		TEST(an_id_of_a_thread_is_used_again),
		TEST(without_children_none_is_followed),
		TEST(unseen_children_are_counted),
		TEST(a_child_counts_from_its_start),
		TEST(children_of_a_launched_command_count),
		TEST(an_end_counts_once),
		TEST(what_ended_before_is_not_counted),
		TEST(children_before_the_first_look_do_not_count),
		TEST(that_clock_s_steps_are_no_loss),
		TEST(a_replaced_thread_is_seen_after_a_while),
		TEST(threads_are_not_listed_while_none_runs),
		TEST(scans_have_their_time),
		TEST(a_thread_that_woke_unseen_is_noticed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
