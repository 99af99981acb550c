/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Batches of samples out of hand-made rings: in the order of time, with the kernel's CPU time shared out, and with all that a
 * ring may hold besides. The threads, their counts and the relay are made up (--wrap).
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <cmocka.h>

#include "capture/perf/perf.h"
#include "os/clock.h"
#include "os/pages.h"
#include "perf_rings.h"

#define MS UINT64_C(1000000)
#define SIZE 65536u
#define N_CPUS 2

static struct perf_event_mmap_page *pages[N_CPUS];
static struct sf_perf perf;

#define NOBODY 0x3ffffff0 /* no process has this id, or one of the next */
#define MB (UINT64_C(1) << 20)
#define N_THREADS 40
static struct sf_thread threads[N_THREADS]; /* from id 10 on */
static struct sf_task_run runs[N_THREADS];
static bool is_gone, is_found, is_deep, is_plain;
static unsigned n_met, n_looks;
static uint64_t met_ns;
static size_t n_found;
static char told[512];

/* The records that were sent. */
static struct {
	uint64_t time_ns, cpu_ns;
	uint32_t stack_size, stack_more;
	int32_t tid;
	uint64_t sp, pc;
	bool in_exec;
} sent[64];
static size_t n_sent, n_losses, n_holds;
static bool sleeps;
static uint64_t held_ns;             /* CPU time that the last hold stands for */
static uint64_t nameless_ns;         /* CPU time that is lost, of no thread */
static union {
	struct sf_stack_copy copy;
	uint8_t room[sizeof(struct sf_stack_copy) + SF_PERF_MAX_RECORD];
} buffer;

uint64_t __real_sf_now_ns(void);
uint64_t __wrap_sf_now_ns(void);
struct sf_thread *__wrap_sf_watch_find(const struct sf_watch *watch, int32_t tid);
struct sf_thread *__wrap_sf_watch_add_thread(struct sf_watch *watch, int32_t pid, int32_t tid, uint64_t now_ns);
bool __wrap_sf_watch_has_process(const struct sf_watch *watch, int32_t pid);
void __wrap_sf_watch_add_process(struct sf_watch *watch, int32_t pid, int32_t parent, const char *name);
void __wrap_sf_watch_process_begins(struct sf_watch *watch, int32_t pid);
void __wrap_sf_watch_exec(struct sf_watch *watch, int32_t pid, const char *name);
void __wrap_sf_watch_fork(struct sf_watch *watch, int32_t pid);
void __wrap_sf_watch_originates(struct sf_watch *watch, int32_t pid, int32_t origin);
void __wrap_sf_watch_rename(struct sf_watch *watch, int32_t tid, const char *name, uint64_t now_ns);
void __wrap_sf_relay_mapping(struct sf_relay *relay, int32_t pid, const struct sf_mapping *mapping);
bool __wrap_sf_task_run(const struct sf_task *task, struct sf_task_run *ret);
bool __wrap_sf_task_look(const struct sf_task *task, struct sf_task_look *ret);
void __wrap_sf_pages_find_stacks(int32_t tid, struct sf_pages_stack *stacks, size_t n);
bool __wrap_sf_pages_fill(int32_t tid, uint64_t addr, uint64_t end);
void __wrap_sf_ptrace_hold(struct sf_capture *capture, struct sf_thread *thread, uint64_t now_ns);
struct sf_stack_copy *__wrap_sf_relay_reserve_waiting(struct sf_relay *relay, uint32_t want);
void __wrap_sf_relay_send(struct sf_relay *relay, struct sf_thread *thread, const struct sf_weight *weight, uint64_t hold_ns);
void __wrap_sf_relay_loss(struct sf_relay *relay, const struct sf_thread *thread, enum sf_loss cause,
			  const struct sf_weight *weight);

/* Time goes on by as much as threads have run. */
static uint64_t ran_ns;

uint64_t __wrap_sf_now_ns(void)
{
	return __real_sf_now_ns() + ran_ns;
}

struct sf_thread *__wrap_sf_watch_find(const struct sf_watch *watch, int32_t tid)
{
	(void)watch;
	if (tid == 12 && !is_found)
		return NULL;
	return tid >= 10 && tid < 10 + N_THREADS ? &threads[tid - 10] : NULL;
}

struct sf_thread *__wrap_sf_watch_add_thread(struct sf_watch *watch, int32_t pid, int32_t tid, uint64_t now_ns)
{
	(void)watch;
	met_ns = now_ns;
	if (pid != 10) { /* of a program that begins */
		snprintf(told + strlen(told), sizeof(told) - strlen(told), "thread %d ", tid);
		return NULL;
	}
	n_met++;
	if (tid != 12)
		return NULL;
	is_found = true;
	return &threads[2];
}

/* Process 10 is watched, and what was met. */
bool __wrap_sf_watch_has_process(const struct sf_watch *watch, int32_t pid)
{
	for (size_t i = 0; i < watch->processes.n; i++) {
		if (watch->processes.items[i].pid == pid)
			return true;
	}
	return pid == 10;
}

void __wrap_sf_watch_add_process(struct sf_watch *watch, int32_t pid, int32_t parent, const char *name)
{
	(void)parent, (void)name;
	if (!__wrap_sf_watch_has_process(watch, pid))
		(void)sf_vec_push(&watch->processes, (struct sf_watched_process){ .pid = pid });
	if (pid != 10)
		snprintf(told + strlen(told), sizeof(told) - strlen(told), "met %d ", pid);
}

void __wrap_sf_watch_process_begins(struct sf_watch *watch, int32_t pid)
{
	(void)watch;
	snprintf(told + strlen(told), sizeof(told) - strlen(told), "begins %d ", pid);
}

/* Its program does not fit the filter. */
static bool exec_is_refused;

void __wrap_sf_watch_exec(struct sf_watch *watch, int32_t pid, const char *name)
{
	(void)watch;
	threads[0].is_refused |= exec_is_refused;
	snprintf(told + strlen(told), sizeof(told) - strlen(told), "exec %d %s ", pid, name);
}

void __wrap_sf_watch_fork(struct sf_watch *watch, int32_t pid)
{
	(void)watch;
	snprintf(told + strlen(told), sizeof(told) - strlen(told), "fork %d ", pid);
}

void __wrap_sf_watch_originates(struct sf_watch *watch, int32_t pid, int32_t origin)
{
	(void)watch;
	snprintf(told + strlen(told), sizeof(told) - strlen(told), "%d is of %d ", pid, origin);
}

void __wrap_sf_watch_rename(struct sf_watch *watch, int32_t tid, const char *name, uint64_t now_ns)
{
	(void)watch, (void)now_ns;
	snprintf(told + strlen(told), sizeof(told) - strlen(told), "name %d %s ", tid, name);
}

void __wrap_sf_relay_mapping(struct sf_relay *relay, int32_t pid, const struct sf_mapping *mapping)
{
	(void)relay;
	snprintf(told + strlen(told), sizeof(told) - strlen(told), "map %d %s ", pid, mapping->path);
}

bool __wrap_sf_task_run(const struct sf_task *task, struct sf_task_run *ret)
{
	*ret = runs[task->tid - 10];
	return !is_gone;
}

/* The stacks of all threads end 128 bytes above their stack pointer, or 1 MB. */
void __wrap_sf_pages_find_stacks(int32_t tid, struct sf_pages_stack *stacks, size_t n)
{
	assert_in_range(tid, 10, 10 + N_THREADS);
	n_looks++;
	n_found += n;
	for (size_t i = 0; i < n; i++) {
		stacks[i].start = stacks[i].sp - 256;
		stacks[i].end = stacks[i].sp + (is_deep ? MB : 128);
		stacks[i].is_plain = is_plain;
	}
}

bool __wrap_sf_pages_fill(int32_t tid, uint64_t addr, uint64_t end)
{
	assert_true(addr < end && end - addr <= SF_PERF_MAX_STACK);
	snprintf(told + strlen(told), sizeof(told) - strlen(told), "%d+%x ", tid, (unsigned)(end - addr));
	return true;
}

bool __wrap_sf_task_look(const struct sf_task *task, struct sf_task_look *ret)
{
	(void)task;
	ret->state = sleeps ? SF_STATE_BLOCKED : SF_STATE_RUNNING;
	return true;
}

void __wrap_sf_ptrace_hold(struct sf_capture *capture, struct sf_thread *thread, uint64_t now_ns)
{
	(void)capture, (void)now_ns;
	n_holds++;
	held_ns = thread->account.cpu_ns;
	thread->account.cpu_ns = 0;
}

struct sf_stack_copy *__wrap_sf_relay_reserve_waiting(struct sf_relay *relay, uint32_t want)
{
	(void)relay;
	assert_true(want <= SF_PERF_MAX_RECORD);
	return &buffer.copy;
}

void __wrap_sf_relay_send(struct sf_relay *relay, struct sf_thread *thread, const struct sf_weight *weight, uint64_t hold_ns)
{
	(void)relay;
	assert_int_equal(hold_ns, 0);
	assert_int_equal(thread->task.tid, buffer.copy.tid);
	sent[n_sent].time_ns = buffer.copy.time_ns;
	sent[n_sent].cpu_ns = weight->cpu_ns;
	sent[n_sent].stack_size = buffer.copy.stack_size;
	sent[n_sent].stack_more = buffer.copy.stack_more;
	sent[n_sent].sp = buffer.copy.stack_start;
	sent[n_sent].pc = buffer.copy.regs.pc;
	sent[n_sent].in_exec = (buffer.copy.flags & SF_STILL_IN_EXEC) != 0;
	sent[n_sent++].tid = buffer.copy.tid;
}

void __wrap_sf_relay_loss(struct sf_relay *relay, const struct sf_thread *thread, enum sf_loss cause,
			  const struct sf_weight *weight)
{
	(void)relay;
	n_losses++;
	nameless_ns += thread || cause != SF_LOSS_GONE ? 0 : weight->cpu_ns;
}

static int set_up(void **state)
{
	(void)state;
	is_deep = false;
	is_plain = true;
	n_looks = 0;
	n_found = 0;
	perf = (struct sf_perf){ .events = { .children = true, .kernel = true, .period_ns = MS, .n_cpus = N_CPUS, .stack_bytes = 1024 } };
	perf.base.period_ns = MS;
	perf.base.watch.options = &perf.base.options;
	sf_perf_budget_begin(&perf.budget);
	for (unsigned i = 0; i < N_CPUS; i++) {
		perf.events.periods_ns[i] = MS;
		pages[i] = made_ring(SIZE);
		pages[i]->data_head = pages[i]->data_tail = SIZE - 64; /* the second record wraps */
		sf_perf_ring_init(&perf.events.rings[i], pages[i], RING_PAGE, SIZE);
	}
	for (int i = 0; i < N_THREADS; i++) {
		runs[i] = (struct sf_task_run){ 0 };
		threads[i] = (struct sf_thread){ .serial = (uint32_t)i + 1, .watched = true, .needs.size = SF_COPY_FIRST,
						 .task = { .pid = 10, .tid = 10 + i } };
		assert_true(sf_vec_push(&perf.base.watch.threads, &threads[i]));
	}
	is_gone = is_found = false;
	n_met = 0;
	told[0] = 0;
	n_sent = n_losses = n_holds = 0;
	sleeps = false;
	nameless_ns = 0;
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	for (unsigned i = 0; i < N_CPUS; i++) {
		sf_perf_ring_deinit(&perf.events.rings[i]);
		free(pages[i]);
	}
	sf_vec_deinit(&perf.due);
	sf_perf_newcomers_deinit(&perf.newcomers);
	sf_vec_deinit(&perf.base.watch.processes);
	sf_vec_deinit(&perf.base.watch.threads);
	return 0;
}

static void append(unsigned cpu, const struct made_record *made)
{
	ring_append(pages[cpu], SIZE, made->bytes, made->size);
}

static void sample(unsigned cpu, int32_t pid, int32_t tid, uint64_t time_ns)
{
	struct made_record made;

	made_sample(&made, pid, tid, time_ns, NULL, 0, PERF_SAMPLE_REGS_ABI_64, 256, 256);
	append(cpu, &made);
}

static void ran(unsigned i, uint64_t ms)
{
	runs[i].cpu_ns += ms * MS;
	ran_ns += ms * MS;
	runs[i].switches++;
}

static void test_in_order_with_all_time_shared_out(void **state)
{
	(void)state;
	sample(0, 10, 10, 100);
	sample(1, 10, 11, 150);
	sample(0, 10, 10, 200);
	sample(1, 10, 10, 250); /* it has moved to the other CPU */
	sample(0, 10, 11, 300);
	ran(0, 9);
	ran(1, 2);
	assert_int_equal(sf_perf_batch(&perf, MS), 5);
	for (size_t i = 1; i < n_sent; i++)
		assert_true(sent[i].time_ns > sent[i - 1].time_ns);
	assert_int_equal(n_sent, 5);
	assert_int_equal(sent[0].cpu_ns, 3 * MS);
	assert_int_equal(sent[1].cpu_ns, MS);
	assert_int_equal(sent[2].cpu_ns, 3 * MS);
	assert_int_equal(sent[3].cpu_ns, 3 * MS);
	assert_int_equal(sent[4].cpu_ns, MS);
	assert_true(threads[0].ran);
	for (unsigned i = 0; i < N_CPUS; i++)
		assert_int_equal(pages[i]->data_tail, pages[i]->data_head);
	assert_int_equal(sf_perf_batch(&perf, MS), 0);
}

/* The batch is wanted at 1 ms. A thread that is seen later has no time before that. */
static void test_a_thread_is_known_since_its_record(void **state)
{
	(void)state;
	sample(0, 10, 12, 3 * MS);
	sf_perf_batch(&perf, MS);
	assert_int_equal(met_ns, 3 * MS);
	is_found = false;
	sample(0, 10, 12, 4 * MS);
	sf_perf_batch(&perf, 9 * MS);
	assert_int_equal(met_ns, 9 * MS);
}

/* The counts are of the moment at which they are read, which may be long after the batch was wanted. */
static void test_counts_are_of_now(void **state)
{
	const uint64_t now_ns = sf_now_ns();

	(void)state;
	sample(0, 10, 10, 100);
	ran(0, 1);
	sf_perf_batch(&perf, MS);
	assert_true(threads[0].seen_ns >= now_ns);
}

/* CPU time without a sample stays for the next one. */
static void test_time_without_a_sample_waits(void **state)
{
	(void)state;
	ran(0, 5);
	sample(0, 10, 11, 1);
	ran(1, 1);
	sf_perf_batch(&perf, MS);
	assert_int_equal(sent[0].cpu_ns, MS);
	sample(0, 10, 10, 2);
	ran(0, 1);
	sf_perf_batch(&perf, 2 * MS);
	assert_int_equal(sent[1].cpu_ns, 6 * MS);
}

/* A thread that has ended has no count: each of its samples stands for a period, and the count says so. */
static void test_ended_threads(void **state)
{
	(void)state;
	sample(0, 10, 10, 1);
	sample(0, 10, 10, 2);
	is_gone = true;
	sf_perf_batch(&perf, MS);
	assert_int_equal(sent[0].cpu_ns + sent[1].cpu_ns, 2 * MS);
	assert_int_equal(threads[0].run.cpu_ns, 2 * MS);
}

/* A first sample stands for a period, and for what the thread used before it was to be known by its samples; the next ones for the count. */
static void test_first_samples(void **state)
{
	(void)state;
	threads[0].by_samples = true;
	threads[0].before_ns = 3 * MS;
	ran(0, 20);
	sample(0, 10, 10, 1);
	sf_perf_batch(&perf, MS);
	assert_int_equal(sent[0].cpu_ns, 4 * MS);
	assert_int_equal(threads[0].run.cpu_ns - threads[0].first_cpu_ns, 4 * MS);
	ran(0, 7);
	sample(0, 10, 10, 2);
	sf_perf_batch(&perf, 2 * MS);
	assert_int_equal(sent[1].cpu_ns, 7 * MS);
}

/* Each CPU has a period of its own. */
static void test_each_cpu_has_its_period(void **state)
{
	(void)state;
	perf.events.periods_ns[1] = 3 * MS;
	sample(0, 10, 10, 1);
	sample(1, 10, 11, 2);
	sample(1, 10, 11, 3);
	is_gone = true;
	sf_perf_batch(&perf, MS);
	assert_int_equal(threads[0].run.cpu_ns, MS);
	assert_int_equal(threads[1].run.cpu_ns, 6 * MS);
}

/* New threads are met; one whose id a thread of another process had is left to the next look at all threads. */
static void test_unknown_threads(void **state)
{
	(void)state;
	sample(0, 10, 12, 1);
	sample(0, 10, 12, 2);
	sample(0, 77, 10, 3);
	ran(2, 1);
	sf_perf_batch(&perf, MS);
	assert_int_equal(n_met, 1);
	assert_int_equal(n_sent, 2);
	assert_int_equal(sent[0].tid, 12);
	assert_int_equal(sent[0].cpu_ns, MS / 2);
	assert_int_equal(perf.base.watch.next_list_ns, 0);
}

/* The kernel's count of an ended thread, one record for each CPU and in any order, is shared out. */
static void test_the_last_count(void **state)
{
	struct made_record made;

	(void)state;
	for (unsigned i = 0; i < N_CPUS; i++) {
		made_begin(&made, PERF_RECORD_READ, 0);
		made_ids(&made, 10, 12);
		made_u64(&made, 3 * MS);
		made_identity(&made, 10, 12, 9, i);
		made_end(&made);
		append(i, &made);
	}
	sample(1, 10, 12, 5);
	sample(1, 10, 12, 6);
	is_gone = true;
	sf_perf_batch(&perf, MS);
	assert_int_equal(n_sent, 2);
	assert_int_equal(sent[0].cpu_ns, 3 * MS);
	assert_int_equal(sent[1].cpu_ns, 3 * MS);
}

static void exec_on(unsigned cpu, int32_t pid, int32_t tid, uint64_t time_ns)
{
	struct made_record made;

	made_begin(&made, PERF_RECORD_COMM, PERF_RECORD_MISC_COMM_EXEC);
	made_ids(&made, pid, tid);
	made_text(&made, "ls");
	made_identity(&made, pid, tid, time_ns, cpu);
	made_end(&made);
	append(cpu, &made);
}

static void exec(int32_t pid, int32_t tid, uint64_t time_ns)
{
	exec_on(0, pid, tid, time_ns);
}

static void fork_of(unsigned cpu, int32_t pid, int32_t parent, uint64_t time_ns)
{
	struct made_record made;

	made_begin(&made, PERF_RECORD_FORK, 0);
	made_ids(&made, pid, parent);
	made_ids(&made, pid, parent);
	made_u64(&made, time_ns);
	made_identity(&made, parent, parent, time_ns, cpu);
	made_end(&made);
	append(cpu, &made);
}

static void exit_on(unsigned cpu, int32_t pid, int32_t tid, uint64_t time_ns)
{
	struct made_record made;

	made_begin(&made, PERF_RECORD_EXIT, 0);
	made_ids(&made, pid, pid);
	made_ids(&made, tid, 12);
	made_u64(&made, time_ns);
	made_identity(&made, pid, tid, time_ns, cpu);
	made_end(&made);
	append(cpu, &made);
}

static void exit_of(int32_t pid, int32_t tid, uint64_t time_ns)
{
	exit_on(0, pid, tid, time_ns);
}

static void test_ends_are_counted(void **state)
{
	(void)state;
	for (unsigned i = 0; i < 3; i++)
		exit_of(10, 13 + (int32_t)i, i + 1);
	sf_perf_batch(&perf, MS);
	assert_int_equal(perf.n_ends, 3);
}

/*
 * The first thread exits, and another one executes a program: from then on its counts are those of the first one's id. Where
 * its entry is not known, as there are several that have not exited, what it used before the exec is nobody's a second time.
 */
static void executes(bool knows_other)
{
	bool is_changed;

	sample(0, 10, 10, 1);
	sample(0, 10, 11, 2);
	ran(0, 1);
	ran(1, 300);
	sf_perf_batch(&perf, MS);
	for (int32_t i = knows_other ? 2 : 3; i < N_THREADS; i++)
		exit_of(10, 10 + i, 3);
	exit_of(10, 10, 4);
	sf_perf_batch(&perf, 10 * MS);
	runs[0] = runs[1];
	ran_ns += 1000 * MS; /* as much time has passed as the counts say */
	assert_false(sf_thread_measure(&threads[0], 10 * MS, &is_changed));
	exec(10, 10, 6);
	sf_perf_batch(&perf, 20 * MS);
	ran(0, 4);
	sample(0, 10, 10, 7);
	sf_perf_batch(&perf, 30 * MS);
	assert_int_equal(threads[0].run.cpu_ns - threads[0].first_cpu_ns, 5 * MS);
	assert_int_equal(threads[1].run.cpu_ns - threads[1].first_cpu_ns, 300 * MS);
}

/* Of the program that does not fit the filter nothing is walked: neither in the batch of its exec nor later. */
static void test_a_program_that_is_refused_has_no_samples(void **state)
{
	(void)state;
	exec_is_refused = true;
	sample(0, 10, 10, 100);
	exec(10, 10, 150);
	sample(0, 10, 10, 200);
	ran(0, 4);
	sf_perf_batch(&perf, MS);
	sample(0, 10, 10, 300);
	ran(0, 4);
	sf_perf_batch(&perf, 2 * MS);
	exec_is_refused = false;
	assert_int_equal(n_sent, 1);
	assert_int_equal(sent[0].time_ns, 100);
	assert_int_equal(sent[0].cpu_ns, 2 * MS);
	assert_int_equal(perf.due.n, 0);
}

static void test_a_thread_that_executes_counts_once(void **state)
{
	(void)state;
	executes(true);
}

static void test_an_unknown_thread_that_executes_counts_once(void **state)
{
	(void)state;
	executes(false);
}

/* Its own CPU time is no other thread's: it has exited, and may still be read, but it exited later. */
static void test_one_that_executes_and_exits_counts_all(void **state)
{
	(void)state;
	sample(0, 10, 10, 1);
	ran(0, 1);
	sf_perf_batch(&perf, MS);
	ran(0, 20);
	exec(10, 10, 5);
	exit_of(10, 10, 6);
	sf_perf_batch(&perf, 2 * MS);
	sf_thread_settle(&threads[0], 3 * MS, false, false);
	assert_int_equal(threads[0].run.cpu_ns - threads[0].first_cpu_ns, 21 * MS);
}

/* The first thread's id is in two records of an exit then: its own, and that of the one that went on under it. */
static void test_a_thread_that_executes_and_exits_counts_once(void **state)
{
	(void)state;
	sample(0, 10, 10, 1);
	sample(0, 10, 11, 2);
	ran(0, 1);
	ran(1, 300);
	sf_perf_batch(&perf, MS);
	for (int32_t i = 2; i < N_THREADS; i++)
		exit_of(10, 10 + i, 3);
	exit_of(10, 10, 4);
	exec(10, 10, 6);
	exit_of(10, 10, 8);
	runs[0] = runs[1];
	ran_ns += 1000 * MS; /* as much time has passed as the counts say */
	sf_perf_batch(&perf, 10 * MS);
	sf_thread_settle(&threads[0], 11 * MS, false, false);
	assert_int_equal(threads[0].run.cpu_ns - threads[0].first_cpu_ns, MS);
}

/* Process 10 ends, and its id is used again: what is told of the other process is not put to it, whatever rings it is in. */
static void test_an_id_that_is_used_again(void **state)
{
	(void)state;
	assert_true(sf_vec_push(&perf.base.watch.processes, (struct sf_watched_process){ .pid = 10 }));
	sample(0, 10, 10, 1);
	fork_of(1, 10, 20, 5);
	exit_of(10, 10, 3);
	exec(10, 10, 6);
	sample(0, 10, 10, 7);
	sample(1, 10, 17, 8);
	perf.base.watch.next_scan_ns = 100 * MS;
	ran(0, 1);
	sf_perf_batch(&perf, MS);
	assert_string_equal(told, "");
	assert_int_equal(n_met, 0);
	assert_int_equal(n_sent, 1);
	assert_int_equal(sent[0].cpu_ns, MS);
	assert_int_equal(perf.base.watch.next_scan_ns, 0);
}

/* The other one has ended, too, and its end is read first. */
static void test_an_id_whose_next_process_has_ended(void **state)
{
	(void)state;
	assert_true(sf_vec_push(&perf.base.watch.processes, (struct sf_watched_process){ .pid = 10 }));
	sample(0, 10, 10, 1);
	fork_of(0, 10, 20, 5);
	sample(0, 10, 10, 7);
	exit_of(10, 10, 9);
	exit_on(1, 10, 10, 3);
	ran(0, 1);
	sf_perf_batch(&perf, MS);
	assert_int_equal(n_met, 0);
	assert_int_equal(n_sent, 1);
	assert_int_equal(sent[0].time_ns, 1);
}

/* Where the CPUs are sampled, descendants are found whatever rings their records are in, and no other process is. */
static void test_records_of_the_watched_only(void **state)
{
	(void)state;
	perf.events.all = true;
	fork_of(0, 30, 20, 2);
	fork_of(0, 90, 80, 3);
	exec(90, 90, 4);
	sample(0, 90, 90, 5);
	sample(0, 10, 10, 6);
	fork_of(1, 20, 10, 1);
	ran(0, 1);
	sf_perf_batch(&perf, MS);
	assert_string_equal(told, "met 20 met 30 begins 20 begins 30 begins 20 fork 20 fork 30 fork 90 exec 90 ls name 90 ls ");
	assert_int_equal(n_met, 0);
	assert_int_equal(n_sent, 1);
	assert_int_equal(sent[0].tid, 10);
}

/* A short life of a process, in the order of time. */
static void test_processes(void **state)
{
	struct made_record made;

	(void)state;
	exec(50, 50, 20);
	made_begin(&made, PERF_RECORD_MMAP2, 0);
	made_ids(&made, 50, 50);
	made_u64(&made, 0x1000);
	made_u64(&made, 0x1000);
	made_u64(&made, 0);
	made_ids(&made, 8, 1);
	made_u64(&made, 77);
	made_u64(&made, 1);
	made_ids(&made, 5, 2);
	made_text(&made, "/bin/ls");
	made_identity(&made, 50, 50, 30, 0);
	made_end(&made);
	append(0, &made);
	fork_of(1, 50, 10, 10);
	sf_perf_batch(&perf, MS);
	assert_string_equal(told, "met 50 met 50 thread 50 fork 50 exec 50 ls name 50 ls map 50 /bin/ls ");
}

/* In the kernel, with so many bytes of user stack. */
static void sample_in_kernel(uint64_t time_ns, uint64_t abi, uint32_t filled)
{
	const uint64_t chain[] = { PERF_CONTEXT_KERNEL, 0xffffffff81000000 };
	struct made_record made;

	made_sample(&made, 10, 10, time_ns, chain, 2, abi, 256, filled);
	append(0, &made);
}

/* What the kernel found in user mode goes with the copy. It is asked for once a walk has ended where that would lead on. */
static void test_what_the_kernel_found_in_user_mode(void **state)
{
	const uint64_t chain[] = { PERF_CONTEXT_KERNEL, 0xffffffff81000000, PERF_CONTEXT_USER, 0x1010, 0x2020 };
	const uint64_t *behind;
	struct made_record made;

	(void)state;
	made_sample(&made, 10, 10, 1, chain, 5, PERF_SAMPLE_REGS_ABI_64, 256, 256);
	append(0, &made);
	ran(0, 8);
	sf_perf_batch(&perf, MS);
	assert_int_equal(n_sent, 1);
	assert_int_equal(buffer.copy.n_kernel, 1);
	assert_int_equal(buffer.copy.n_chain, 2);
	behind = sf_stack_copy_kernel(&buffer.copy) + buffer.copy.n_kernel;
	assert_int_equal(behind[0], 0x1010);
	assert_int_equal(behind[1], 0x2020);
	assert_false(perf.chain_wanted);
	threads[0].needs.chain = true;
	sample(0, 10, 10, 2);
	ran(0, 8);
	sf_perf_batch(&perf, 2 * MS);
	assert_int_equal(buffer.copy.n_chain, 0);
	assert_true(perf.chain_wanted);
}

/*
 * While a program is replaced, and while a thread ends, there is no user stack: the kernel's frames are all. A stack
 * that cannot be read at any other time is none of these.
 */
static void test_no_user_stack_in_exec_and_at_the_end(void **state)
{
	(void)state;
	sample_in_kernel(1, PERF_SAMPLE_REGS_ABI_64, 256);
	sample_in_kernel(2, PERF_SAMPLE_REGS_ABI_64, 0);    /* the old program is taken down */
	exec(10, 10, 3);
	sample_in_kernel(4, PERF_SAMPLE_REGS_ABI_64, 0);
	sample_in_kernel(5, PERF_SAMPLE_REGS_ABI_64, 256);  /* on the new stack, with the old registers */
	sample(0, 10, 10, 6);
	sample_in_kernel(7, PERF_SAMPLE_REGS_ABI_64, 0);
	sample_in_kernel(8, PERF_SAMPLE_REGS_ABI_NONE, 0);  /* at the thread's end */
	ran(0, 8);
	sf_perf_batch(&perf, MS);
	assert_int_equal(n_sent, 7);
	assert_int_equal(n_losses, 0);
	assert_true(sent[0].pc && !sent[0].in_exec);
	assert_true(!sent[1].pc && !sent[2].pc);
	assert_true(sent[3].pc && sent[3].in_exec);
	assert_true(sent[4].pc && !sent[4].in_exec);
	assert_true(sent[5].pc && !sent[5].in_exec);
	assert_false(sent[6].pc);
}

/*
 * Without the right to the kernel's time a sample stands for a period, about. CPU time beyond that waits for samples to come;
 * time that is too much for them is the kernel's, and a loss.
 */
static void test_kernel_time_is_no_user_time(void **state)
{
	const uint64_t before_ns = sf_now_ns();

	(void)state;
	perf.events.kernel = false;
	sample(0, 10, 10, 1);
	ran(0, 11);
	sf_perf_batch(&perf, 20 * MS);
	/* And for what it may have run until its count was read. */
	assert_in_range(sent[0].cpu_ns, MS + MS / 20, MS + MS / 20 + sf_now_ns() - before_ns);
	assert_int_equal(n_losses, 0);
	for (unsigned i = 0; i < 10; i++)
		sample(0, 10, 10, 2 + i);
	sf_perf_batch(&perf, 40 * MS);
	assert_int_equal(n_losses, 0);
	assert_int_equal(threads[0].account.cpu_ns + threads[0].account.beyond_ns, 0);
	sample(0, 10, 10, 20);
	ran(0, 100);
	sf_perf_batch(&perf, 60 * MS);
	assert_int_equal(n_losses, 1);
	assert_int_equal(threads[0].account.beyond_ns, MS);
}

/* The kernel's copies of its stack are too short. A hold would break off the system call that it sleeps in by now. */
static void test_sleepers_are_not_held(void **state)
{
	(void)state;
	perf.may_hold = true;
	atomic_store(&threads[0].needs.n_too_short, SF_TOO_SHORT);
	sample(0, 10, 10, 1);
	ran(0, 1);
	sf_perf_batch(&perf, MS);
	assert_int_equal(n_holds, 1);
	sleeps = true;
	sample(0, 10, 10, 2);
	ran(0, 1);
	sf_perf_batch(&perf, 2 * MS);
	assert_int_equal(n_holds, 1);
}

/* A sample whose copy has so many of 256 bytes. */
static void sample_of(uint64_t time_ns, uint64_t filled)
{
	struct made_record made;

	made_sample(&made, 10, 10, time_ns, NULL, 0, PERF_SAMPLE_REGS_ABI_64, 256, filled);
	append(0, &made);
}

/*
 * Of a thread whose stack is deep at times the copies that have its first frame are walked. It is held in place of the
 * others, and the hold has their part of the CPU time.
 */
static void test_whole_copies_of_a_deep_thread(void **state)
{
	(void)state;
	perf.may_hold = true;
	sample_of(1, 256);
	ran(0, 1);
	sf_perf_batch(&perf, MS);
	atomic_store(&threads[0].needs.n_too_short, SF_TOO_SHORT);
	sample_of(2, 256);
	ran(0, 1);
	sf_perf_batch(&perf, 2 * MS); /* nobody knows where its first frame is */
	assert_int_equal(n_sent, 1);
	assert_int_equal(n_holds, 1);
	assert_int_equal(threads[0].batch.held_ns, MS); /* of a batch without another sample, too */
	atomic_store(&threads[0].needs.root_sp, sent[0].sp + 128);
	for (uint64_t t = 3; t <= 6; t++)
		sample_of(t, t % 2 ? 256 : 128);
	ran(0, 8);
	sf_perf_batch(&perf, 3 * MS);
	assert_int_equal(n_holds, 2);
	assert_int_equal(n_sent, 3);
	for (unsigned i = 1; i < 3; i++) {
		assert_int_equal(sent[i].time_ns, 2 * i + 1);
		assert_int_equal(sent[i].stack_size, 256);
		assert_int_equal(sent[i].cpu_ns, 2 * MS);
	}
	assert_int_equal(held_ns, 4 * MS);
	assert_int_equal(threads[0].batch.held_ns, 4 * MS);
	atomic_store(&threads[0].needs.leads.at[0], 0x1000); /* it uses another stack, too */
	sample_of(7, 256);
	ran(0, 1);
	sf_perf_batch(&perf, 4 * MS);
	assert_int_equal(n_holds, 3);
	assert_int_equal(n_sent, 3);
}

static void test_losses_are_counted(void **state)
{
	struct made_record made;

	(void)state;
	made_begin(&made, PERF_RECORD_LOST, 0);
	made_u64(&made, 0);
	made_u64(&made, 41);
	made_identity(&made, 0, 0, 5, 0);
	made_end(&made);
	append(0, &made);
	append(1, &made);
	made_begin(&made, PERF_RECORD_THROTTLE, 0);
	made_u64(&made, 0);
	made_u64(&made, 0);
	made_u64(&made, 0);
	made_identity(&made, 0, 0, 5, 0);
	made_end(&made);
	append(1, &made);
	sf_perf_batch(&perf, MS);
	assert_int_equal(perf.n_lost, 82);
	assert_int_equal(perf.n_throttled, 1);
	/* A thread that is no 64-bit one has no stack: its time is a loss. */
	made_sample(&made, 10, 10, 6, NULL, 0, PERF_SAMPLE_REGS_ABI_32, 256, 256);
	append(0, &made);
	ran(0, 1);
	sf_perf_batch(&perf, MS);
	assert_int_equal(n_losses, 1);
	assert_int_equal(n_sent, 0);
}

/* Copies that were cut say so, and make those to come longer where the walk has missed something. */
static void test_copies_that_are_cut(void **state)
{
	struct made_record made;

	(void)state;
	made_sample(&made, 10, 10, 6, NULL, 0, PERF_SAMPLE_REGS_ABI_64, 256, 255 & ~7u);
	append(0, &made);
	made_sample(&made, 10, 10, 7, NULL, 0, PERF_SAMPLE_REGS_ABI_64, 256, 256);
	append(0, &made);
	threads[0].needs.size = 4096;
	atomic_store(&threads[0].needs.cut_at, 1024);
	sf_perf_batch(&perf, MS);
	assert_int_equal(sent[0].stack_size, 248);
	assert_int_equal(sent[0].stack_more, 1); /* as far as is known */
	assert_int_equal(sent[1].stack_size, 256);
	assert_int_equal(sent[1].stack_more, 1);
	assert_int_equal(perf.stack_wanted, 2 * 1024);
	assert_int_equal(n_looks, 1);
	assert_true(sent[0].sp >= 0x1000 && sent[0].sp < 0x1000 + sf_perf_n_regs);
}

/* A batch at that time, with a sample of one thread whose copy has ended at half its room. */
static void half_a_copy(int32_t tid, uint64_t now_ns)
{
	struct made_record made;

	made_sample(&made, 10, tid, now_ns - 1, NULL, 0, PERF_SAMPLE_REGS_ABI_64, 256, 128);
	append(0, &made);
	ran((unsigned)tid - 10, 1);
	sf_perf_batch(&perf, now_ns);
}

/*
 * The kernel's copy ends at a page that was never touched: the stack goes on, and a copy that ends there is no reason
 * for longer ones.
 */
static void test_a_hole(void **state)
{
	(void)state;
	is_deep = true;
	atomic_store(&threads[0].needs.cut_at, SF_PERF_MAX_STACK);
	perf.events.stack_bytes = SF_PERF_MAX_STACK;
	half_a_copy(10, 2000 * MS);
	half_a_copy(10, 2010 * MS);
	assert_int_equal(n_looks, 2);
	/* The end of the stack, and what lies above the stack pointer. */
	assert_string_equal(told, "10+fff8 10+fff8 10+fff8 10+fff8 ");
	assert_int_equal(sent[1].stack_size, 128);
	assert_int_equal(sent[1].stack_more, 1);
	assert_false(buffer.copy.longest);
	assert_int_equal(perf.stack_wanted, 0);
}

/* Memory that the kernel does not fill alone is left as it is. */
static void test_a_hole_that_is_not_filled(void **state)
{
	(void)state;
	is_deep = true;
	is_plain = false;
	half_a_copy(10, 2000 * MS);
	half_a_copy(10, 2010 * MS);
	assert_int_equal(n_looks, 1);
	assert_string_equal(told, "");
	assert_int_equal(sent[1].stack_more, 0);
}

/* One look is for all threads of the process whose stacks are not known. */
static void test_stacks_are_looked_at_together(void **state)
{
	struct made_record made;

	(void)state;
	for (int32_t tid = 13; tid < 20; tid++) {
		made_sample(&made, 10, tid, 5, NULL, 0, PERF_SAMPLE_REGS_ABI_64, 256, 128);
		append(0, &made);
	}
	sf_perf_batch(&perf, 2000 * MS);
	half_a_copy(20, 2010 * MS);
	assert_int_equal(n_looks, 2);
	assert_int_equal(n_found, 8);
}

/* A look that has cost much is followed by time without one. The stack is taken to go on meanwhile. */
static void test_looks_cost_a_part_of_a_cpu(void **state)
{
	(void)state;
	perf.holes.paid_ns = 2000 * MS;
	perf.holes.credit_ns = -(int64_t)MS;
	half_a_copy(10, 2050 * MS);
	half_a_copy(10, 2099 * MS);
	assert_int_equal(n_looks, 0);
	assert_int_equal(sent[1].stack_more, 1);
	half_a_copy(10, 2101 * MS);
	assert_int_equal(n_looks, 1);
	assert_true(perf.holes.credit_ns < (int64_t)MS / 100);
}

/* Only a copy that was handed on whole says that there is no longer one. */
static void test_the_longest_copy(void **state)
{
	struct made_record made;

	(void)state;
	perf.events.stack_bytes = SF_PERF_MAX_STACK;
	threads[0].needs.size = 1024;
	made_sample(&made, 10, 10, 6, NULL, 0, PERF_SAMPLE_REGS_ABI_64, 4096, 4096);
	append(0, &made);
	sf_perf_batch(&perf, MS);
	assert_int_equal(sent[0].stack_size, 2048);
	assert_int_equal(sent[0].stack_more, 1);
	assert_false(buffer.copy.longest);
	threads[0].needs.size = 4096;
	made_sample(&made, 10, 10, 7, NULL, 0, PERF_SAMPLE_REGS_ABI_64, 4096, 4096);
	append(0, &made);
	sf_perf_batch(&perf, MS);
	assert_int_equal(sent[1].stack_size, 4096);
	assert_true(buffer.copy.longest);
}

/* The end of a stack is looked at once. */
static void test_the_end_of_a_stack(void **state)
{
	(void)state;
	half_a_copy(10, 2000 * MS);
	half_a_copy(10, 2010 * MS);
	half_a_copy(10, 2020 * MS);
	assert_int_equal(n_looks, 1);
	assert_int_equal(n_sent, 3);
	assert_int_equal(sent[2].stack_more, 0);
}

/* A record that is none, between good ones: what follows it in that ring is lost, the other ring is not. */
static void test_a_broken_ring(void **state)
{
	const struct perf_event_header bad = { .type = PERF_RECORD_SAMPLE, .size = 9 };

	(void)state;
	sample(0, 10, 10, 1);
	ring_append(pages[0], SIZE, &bad, sizeof(bad));
	sample(0, 10, 10, 2);
	sample(1, 10, 10, 3);
	ran(0, 4);
	sf_perf_batch(&perf, MS);
	assert_int_equal(n_sent, 2);
	assert_int_equal(sent[0].cpu_ns + sent[1].cpu_ns, 4 * MS);
	sample(0, 10, 10, 4);
	sf_perf_batch(&perf, MS);
	assert_int_equal(n_sent, 3);
}

/*
 * While the limit puts samples off by ever more, ever fewer are handed on. No CPU time is lost, and samples that are
 * passed over count as seen.
 */
static void test_what_is_over_budget(void **state)
{
	static const uint64_t late_ms[] = { 0, 100, 300, 900 };
	(void)state;

	perf.events.kernel = false;
	for (unsigned i = 0; i < 4; i++) {
		const uint64_t n_over = perf.budget.n_over;
		uint64_t cpu_ns = 0;

		sf_perf_budget_set(&perf.budget, late_ms[i] * MS, 0, 25000);
		n_sent = 0;
		for (uint64_t n = 0; n < 60; n++)
			sample(0, 10, 10, i * 1000 * MS + n * MS + n * n * 997);
		ran(0, 60);
		sf_perf_batch(&perf, MS);
		for (size_t j = 0; j < n_sent; j++)
			cpu_ns += sent[j].cpu_ns;
		print_message("%llu ms late: %zu\n", (unsigned long long)late_ms[i], n_sent);
		assert_int_equal(perf.budget.n_over - n_over, 60 - n_sent);
		assert_in_range(n_sent, 60 / (1 + 2 * i * i), 60 / (1 + i * i * 9 / 16)); /* 60, 30, 15, 6 are expected */
		assert_true(cpu_ns > 59 * MS && cpu_ns <= 60 * MS);
		assert_int_equal(n_losses, 0);
	}
	assert_int_equal(perf.budget.n_samples, 240);
}

/* Of finer samples all are walked until the thread has used two periods, then as many as were asked for; all its time is in them. */
static void test_finer_samples(void **state)
{
	uint64_t cpu_ns = 0;
	size_t n_first;
	(void)state;

	perf.events.kernel = false;
	perf.events.period_ns = perf.events.periods_ns[0] = MS / 4;
	for (uint64_t n = 0; n < 20; n++)
		sample(0, 10, 10, n * MS / 4);
	ran(0, 5);
	sf_perf_batch(&perf, MS);
	n_first = n_sent;
	for (uint64_t n = 20; n < 120; n++)
		sample(0, 10, 10, n * MS / 4 + n * n * 997);
	for (uint64_t n = 0; n < 4; n++)
		sample(0, 10, 11, (120 + n) * MS);
	ran(0, 25);
	ran(1, 1);
	sf_perf_batch(&perf, MS);
	assert_int_equal(n_first, 20);
	assert_in_range(n_sent - n_first - 4, 10, 40); /* a fourth of 100 is expected */
	for (size_t j = 0; j < n_sent; j++)
		cpu_ns += sent[j].cpu_ns;
	assert_true(cpu_ns > 29 * MS && cpu_ns <= 31 * MS);
	assert_int_equal(perf.budget.n_over, 0); /* nothing was passed over for its cost */
}

/* However much else the engine has spent, samples of CPU time have room for half of the limit. A batch without samples changes little. */
static void test_some_have_room_whatever_else_is_spent(void **state)
{
	(void)state;
	for (int i = 0; i < 100; i++) {
		perf.budget.n_samples += i % 4 ? 0 : 160;
		sf_perf_budget_set(&perf.budget, 1000000 * MS, MS, 50000);
		if (i >= 80)
			assert_in_range(perf.budget.part, SF_PERF_ALL / 5, SF_PERF_ALL / 10 * 3); /* half of 1 ms, of 2 ms in each batch */
	}
	for (int i = 0; i < 100; i++)
		sf_perf_budget_set(&perf.budget, 1000000 * MS, MS, 50000);
	assert_int_equal(perf.budget.part, SF_PERF_ALL);
}

/*
 * A thread on its last way has no ids any more. It is no process, and its time is a loss: of the samples that are not
 * passed over, for the others, too.
 */
static void test_no_ids_any_more(void **state)
{
	const struct sf_capture_options options = { .all = true };
	(void)state;

	perf.base.watch.options = &options;
	sample(0, -1, -1, 1);
	sf_perf_batch(&perf, MS);
	assert_int_equal(nameless_ns, MS);
	perf.budget.part = SF_PERF_ALL / 2;
	for (uint64_t i = 0; i < 60; i++)
		sample(0, -1, -1, 2 + i * 997);
	sf_perf_batch(&perf, 2 * MS);
	assert_in_range(nameless_ns, 30 * MS, 90 * MS);
	assert_int_equal(n_met + n_sent, 0);
	assert_string_equal(told, "");
	/* Where the kernel counts for each thread, nothing is missing. */
	perf.base.watch.options = &perf.base.options;
	nameless_ns = 0;
	sample(0, -1, -1, 100);
	sf_perf_batch(&perf, 3 * MS);
	assert_int_equal(nameless_ns, 0);
	assert_string_equal(told, "");
}

/* Where processes come into sight by their samples: the child of one that has had its sample, and has ended. */
static void test_the_name_of_a_child(void **state)
{
	const struct sf_capture_options options = { .all = true };
	struct sf_watched_process parent = { .pid = NOBODY, .name = "make" };
	(void)state;

	perf.base.watch.options = &options;
	assert_true(sf_vec_push(&perf.base.watch.processes, parent));
	fork_of(0, NOBODY + 1, NOBODY, 1);
	fork_of(1, NOBODY + 3, NOBODY + 2, 2); /* its parent is not known */
	sf_perf_batch(&perf, MS);
	assert_string_equal(sf_perf_newcomers_find(&perf.newcomers, NOBODY + 1)->name, "make");
	assert_string_equal(sf_perf_newcomers_find(&perf.newcomers, NOBODY + 3)->name, "");
}

static void assert_origin(int32_t pid, int32_t origin)
{
	char expected[64];

	snprintf(expected, sizeof(expected), "%d is of %d ", pid, origin);
	assert_non_null(strstr(told, expected));
}

/*
 * A program that was begun on another CPU has another place than the one before: its child has the code of the new one. One
 * whose own exec is still to come has the code of the process that it is of.
 */
static void test_an_exec_in_another_ring(void **state)
{
	const struct sf_capture_options options = { .all = true };
	(void)state;

	perf.base.watch.options = &options;
	fork_of(0, NOBODY + 2, NOBODY + 1, 7);
	sample(0, NOBODY + 2, NOBODY + 2, 8);
	sample(0, NOBODY + 3, NOBODY + 3, 9);
	fork_of(1, NOBODY + 1, NOBODY, 1);
	exec_on(1, NOBODY + 1, NOBODY + 1, 5);
	fork_of(1, NOBODY + 3, NOBODY + 1, 6);
	exec_on(1, NOBODY + 3, NOBODY + 3, 10);
	sf_perf_batch(&perf, MS);
	assert_origin(NOBODY + 2, NOBODY + 1);
	assert_origin(NOBODY + 3, NOBODY + 1);
}

/*
 * The first sample of a thread is walked, so that the CPU time of a short one is not lost; of many new threads in one
 * batch 32.
 */
static void test_first_samples_are_walked(void **state)
{
	const int32_t first = 12, last = 10 + N_THREADS - 1;
	(void)state;
	is_found = true;
	perf.budget.part = 0;
	for (int32_t tid = first; tid <= last; tid++) {
		sample(0, 10, tid, (uint64_t)tid);
		sample(0, 10, tid, (uint64_t)tid + 100);
	}
	sf_perf_batch(&perf, MS);
	assert_int_equal(n_sent, 32);
	for (unsigned i = 0; i < 32; i++)
		assert_int_equal(sent[i].tid, first + (int32_t)i);
	assert_int_equal(perf.budget.n_over, 2 * (last - first + 1) - 32);
	for (int32_t tid = first; tid <= last; tid++)
		sample(0, 10, tid, (uint64_t)tid + 200);
	sf_perf_batch(&perf, 2 * MS);
	assert_int_equal(n_sent, last - first + 1);
	assert_int_equal(sent[32].tid, first + 32);
	assert_int_equal(sent[n_sent - 1].tid, last);
}

/* A thread that comes into sight by its samples does so by the first one that is walked. */
static void test_threads_are_not_met_for_what_is_over_budget(void **state)
{
	const struct sf_capture_options options = { .all = true };
	(void)state;

	perf.base.watch.options = &options;
	perf.budget.part = 0;
	sample(0, 10, 12, 1);
	sample(0, 10, 12, 2);
	sf_perf_batch(&perf, MS);
	assert_int_equal(n_met, 0);
	assert_int_equal(n_sent, 0);
	assert_int_equal(perf.budget.n_samples, 2);
	assert_int_equal(perf.budget.n_over, 2);
	perf.budget.part = SF_PERF_ALL;
	sample(0, 10, 12, 3);
	sf_perf_batch(&perf, 2 * MS);
	assert_int_equal(n_met, 1);
	assert_int_equal(n_sent, 1);
}

/* --- stacks that were left for a signal's handler --- */

#define MAIN_STACK UINT64_C(0x7f0000000000) /* beyond the registers of made_sample() */
#define REGS_AT (sizeof(struct perf_event_header) + 24 + 16) /* behind the identity, no chain and the ABI */

static struct perf_event_mmap_page *signals_page;

static int set_up_signals(void **state)
{
	set_up(state);
	signals_page = made_ring(SIZE);
	perf.signals.events = (struct sf_perf_events){ .kind = SF_PERF_SIGNALS, .n_cpus = 1 };
	sf_perf_ring_init(&perf.signals.events.rings[0], signals_page, RING_PAGE, SIZE);
	perf.signals.left = calloc(SF_PERF_LEFT_STACKS, sizeof(*perf.signals.left));
	return perf.signals.left ? 0 : -1;
}

static int tear_down_signals(void **state)
{
	sf_perf_ring_deinit(&perf.signals.events.rings[0]);
	free(signals_page);
	free(perf.signals.left);
	return tear_down(state);
}

/* Where a thread on the main stack is interrupted: each register is by so much larger than in made_sample(). */
static struct sf_regs interrupted_at(uint64_t stack)
{
	uint64_t values[64];
	struct sf_regs regs;

	for (unsigned i = 0; i < sf_perf_n_regs; i++)
		values[i] = 0x1000 + i + stack;
	sf_perf_load_regs(values, &regs);
	return regs;
}

/* The frame of a handler on the alternate stack, which says where the thread was interrupted. */
static void put_frame(struct made_record *made, uint64_t stack)
{
	const struct sf_regs regs = interrupted_at(stack);
	uint8_t *bytes = made->bytes + REGS_AT + sf_perf_n_regs * sizeof(uint64_t) + sizeof(uint64_t);

	memcpy(bytes + 64, &regs.r[sf_arch_host()->sp], sizeof(uint64_t));
	memcpy(bytes + 72, &regs.pc, sizeof(uint64_t));
}

/*
 * A signal that interrupts a thread there, with 256 bytes of its stack. `frame`: of another one, whose handler it
 * interrupts; 0: none.
 */
static void signal_at(int32_t tid, uint64_t time_ns, uint64_t stack, uint64_t frame)
{
	struct made_record made;

	made_sample(&made, 10, tid, time_ns, NULL, 0, PERF_SAMPLE_REGS_ABI_64, 512, 256);
	for (unsigned i = 0; i < sf_perf_n_regs; i++)
		((uint64_t *)(void *)(made.bytes + REGS_AT))[i] += stack;
	if (frame)
		put_frame(&made, frame);
	ring_append(signals_page, SIZE, made.bytes, made.size);
}

static void sample_in_handler(uint64_t time_ns, uint64_t stack)
{
	struct made_record made;

	made_sample(&made, 10, 10, time_ns, NULL, 0, PERF_SAMPLE_REGS_ABI_64, 256, 248);
	put_frame(&made, stack);
	append(0, &made);
	ran(0, 1);
	sf_perf_batch(&perf, MS);
}

static void assert_left(uint64_t stack)
{
	const struct sf_regs regs = interrupted_at(stack);

	assert_int_equal(buffer.copy.n_others, 1);
	assert_int_equal(buffer.copy.others[0].start, regs.r[sf_arch_host()->sp]);
	assert_int_equal(buffer.copy.others[0].size, 256);
	assert_int_equal(buffer.copy.others[0].more, 0);
	for (unsigned i = 0; i < 64; i++)
		assert_int_equal(buffer.copy.stack[248 + i], i);
}

static void test_the_stack_that_was_left_is_the_second_one(void **state)
{
	(void)state;
	signal_at(10, 1, MAIN_STACK, 0);
	sample_in_handler(2, MAIN_STACK);
	assert_left(MAIN_STACK);
	sample_in_handler(3, MAIN_STACK);
	assert_left(MAIN_STACK);
	signal_at(10, 4, MAIN_STACK + 4096, 0); /* another handler begins */
	sample_in_handler(5, MAIN_STACK + 4096);
	assert_left(MAIN_STACK + 4096);
	assert_int_equal(n_sent, 3);
}

/* The handler is interrupted by another one, on the same stack. */
static void test_a_stack_that_was_left_twice(void **state)
{
	(void)state;
	signal_at(10, 1, MAIN_STACK, 0);
	signal_at(10, 2, 0x100000, MAIN_STACK);
	sample_in_handler(3, MAIN_STACK);
	assert_left(MAIN_STACK);
}

static void test_no_stack_that_was_left(void **state)
{
	(void)state;
	signal_at(11, 1, MAIN_STACK, 0); /* by another thread */
	sample_in_handler(2, MAIN_STACK);
	assert_int_equal(buffer.copy.n_others, 0);
	signal_at(10, 3, MAIN_STACK, 0);
	sample_in_handler(4, MAIN_STACK + 4096); /* at another place */
	assert_int_equal(buffer.copy.n_others, 0);
	signal_at(10, 5, 0, 0); /* the thread's own copy has that place */
	sample_in_handler(6, 0);
	assert_int_equal(buffer.copy.n_others, 0);
}

/* Of more threads than there is room for, the last ones, and those that have samples in their handlers. */
static void test_many_stacks_that_were_left(void **state)
{
	(void)state;
	signal_at(10, 1, MAIN_STACK, 0);
	for (int32_t i = 0; i < (int32_t)SF_PERF_LEFT_STACKS - 1; i++)
		signal_at(1000 + i, (uint64_t)(2 + i), MAIN_STACK, 0);
	sample_in_handler(100, MAIN_STACK);
	assert_left(MAIN_STACK);
	signal_at(999, 101, MAIN_STACK, 0);
	sample_in_handler(102, MAIN_STACK);
	assert_left(MAIN_STACK);
	for (int32_t i = 0; i < (int32_t)SF_PERF_LEFT_STACKS; i++)
		signal_at(2000 + i, (uint64_t)(103 + i), MAIN_STACK, 0);
	sample_in_handler(200, MAIN_STACK);
	assert_int_equal(buffer.copy.n_others, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_in_order_with_all_time_shared_out, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_counts_are_of_now, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_a_thread_is_known_since_its_record, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_time_without_a_sample_waits, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_ended_threads, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_first_samples, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_each_cpu_has_its_period, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_unknown_threads, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_the_last_count, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_ends_are_counted, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_a_program_that_is_refused_has_no_samples, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_a_thread_that_executes_counts_once, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_an_unknown_thread_that_executes_counts_once, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_one_that_executes_and_exits_counts_all, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_a_thread_that_executes_and_exits_counts_once, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_processes, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_an_id_that_is_used_again, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_an_id_whose_next_process_has_ended, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_records_of_the_watched_only, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_what_the_kernel_found_in_user_mode, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_no_user_stack_in_exec_and_at_the_end, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_kernel_time_is_no_user_time, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_sleepers_are_not_held, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_whole_copies_of_a_deep_thread, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_losses_are_counted, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_copies_that_are_cut, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_a_hole, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_a_hole_that_is_not_filled, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_stacks_are_looked_at_together, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_looks_cost_a_part_of_a_cpu, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_the_longest_copy, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_the_end_of_a_stack, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_a_broken_ring, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_what_is_over_budget, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_finer_samples, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_some_have_room_whatever_else_is_spent, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_no_ids_any_more, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_the_name_of_a_child, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_an_exec_in_another_ring, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_first_samples_are_walked, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_threads_are_not_met_for_what_is_over_budget, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_the_stack_that_was_left_is_the_second_one, set_up_signals, tear_down_signals),
		cmocka_unit_test_setup_teardown(test_a_stack_that_was_left_twice, set_up_signals, tear_down_signals),
		cmocka_unit_test_setup_teardown(test_no_stack_that_was_left, set_up_signals, tear_down_signals),
		cmocka_unit_test_setup_teardown(test_many_stacks_that_were_left, set_up_signals, tear_down_signals),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
