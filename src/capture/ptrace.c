/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The ptrace engine: threads are held by the kernel, on request, for the time in which their
 * registers and stack are copied (os/hold.h); the copies are walked by another thread (relay.h).
 *
 * At each tick every thread is looked at. One that is awake is asked for, and its stack is copied
 * when it stands; where it does not stand at once it is left pending, and its sample comes late.
 * One that sleeps is due less often, is read without touching it, and as long as it sleeps on
 * its last sample stands for it. Only where that walk needs registers that /proc does not tell
 * is a sleeping thread interrupted, once for each sleep, and never in a system call that would
 * not go on afterwards.
 *
 * The holding thread sits where the thread runs: waking another CPU costs ten times what the whole hold does
 * (docs/benchmarks.md, "Holding a thread").
 */
#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "capture/engine.h"
#include "capture/hold_time.h"
#include "capture/watch.h"
#include "os/clock.h"
#include "os/syscalls.h"

#define MAX_ASKED 64                /* holds under way at a time */
#define PATIENCE_NS 1000000         /* how long a CPU's threads are waited for before the next CPU's */
#define ELSEWHERE_NS 25000          /* a hold on the same CPU takes 10 us from the request on */
#define LONG_ASLEEP 20              /* ticks without a change after which a thread is looked at less often */

struct sf_capture {
	struct sf_capture_options options;
	struct sf_watch watch;
	struct sf_relay *relay;
	struct sf_hold_time hold_time;
	uint64_t period_ns, blocked_period_ns;
	uint64_t random;
	int n_asked;
	int n_awake, n_awake_before; /* threads that were awake at this tick, at the one before */
	int next_cpu;               /* where to sleep until the next tick; -1: here */
	int child_status;
	bool child_ended;
	enum sf_hold refusal;       /* the last reason why a thread could not be asked for */
	int32_t refused_tid;
	bool held_any;
	_Atomic bool stopped;
};

static bool check(int32_t pid, struct sf_error *err)
{
	enum sf_hold result = pid ? sf_hold_allowed(pid) : SF_HOLD_ASKED;

	return result == SF_HOLD_ASKED || sf_hold_explain(pid, pid, result, err);
}

static uint64_t period_of(uint64_t rate_mhz)
{
	return rate_mhz ? UINT64_C(1000000000000) / rate_mhz : 0;
}

static bool open_capture(const struct sf_capture_options *options, struct sf_capture **ret,
			 struct sf_error *err)
{
	struct sf_capture *capture = calloc(1, sizeof(*capture));

	if (!capture)
		return sf_fail_memory(err);
	capture->options = *options;
	capture->child_status = -1;
	capture->period_ns = period_of(options->rate_mhz);
	capture->blocked_period_ns = period_of(options->blocked_rate_mhz);
	capture->random = sf_now_ns() | 1;
	if (!sf_watch_open(&capture->watch, &capture->options, err)) {
		free(capture);
		return false;
	}
	*ret = capture;
	return true;
}

static void close_capture(struct sf_capture *capture)
{
	if (!capture)
		return;
	sf_watch_close(&capture->watch);
	free(capture);
}

static void stop(struct sf_capture *capture)
{
	atomic_store_explicit(&capture->stopped, true, memory_order_relaxed);
}

static int child_status(const struct sf_capture *capture)
{
	return capture->child_status;
}

/* xorshift64: a period between 3/4 and 5/4 of the wanted one, so that nothing can keep step with us. */
static uint64_t jitter(struct sf_capture *capture, uint64_t period_ns)
{
	capture->random ^= capture->random << 13;
	capture->random ^= capture->random >> 7;
	capture->random ^= capture->random << 17;
	return period_ns * 3 / 4 + capture->random % (period_ns / 2 + 1);
}

static void lose(struct sf_capture *capture, struct sf_thread *thread, enum sf_loss cause)
{
	struct sf_weight weight = sf_thread_awake(thread)
		? sf_thread_take_awake(thread, true, capture->period_ns)
		: sf_thread_take_asleep(thread, capture->blocked_period_ns);

	sf_relay_loss(capture->relay, thread, cause, &weight);
}

static uint8_t state_asleep(const struct sf_thread *thread)
{
	char letter = sf_task_letter(thread->task.pid, thread->task.tid, NULL);

	return letter == 'T' || letter == 't' ? SF_STATE_STOPPED : SF_STATE_BLOCKED;
}

/* Sends what was taken of a held thread, which runs again. */
static void send_held(struct sf_capture *capture, struct sf_thread *thread, struct sf_taken *taken,
		      uint64_t hold_ns)
{
	bool awake = sf_thread_awake(thread);
	bool on_cpu = sf_thread_settle(thread, capture->hold_time.returned_ns);
	struct sf_weight weight;

	if (awake) {
		weight = sf_thread_take_awake(thread, on_cpu, capture->period_ns);
		taken->state = on_cpu ? SF_STATE_RUNNING : SF_STATE_RUNNABLE;
	} else {
		weight = sf_thread_take_asleep(thread, capture->blocked_period_ns);
		taken->state = state_asleep(thread);
		taken->syscall = thread->look.syscall;
		memcpy(taken->args, thread->look.args, sizeof(taken->args));
	}
	taken->time_ns = thread->asked_ns;
	sf_relay_send(capture->relay, thread, &weight, hold_ns);
	capture->held_any = true;
}

/* A thread stands: copy, let go, send. */
static void take_held(struct sf_capture *capture, struct sf_thread *thread,
		      struct sf_held *held)
{
	uint32_t want = atomic_load_explicit(&thread->want, memory_order_relaxed);
	struct sf_taken *taken = sf_relay_reserve(capture->relay, want);
	bool complete = taken && sf_take_held(held, thread->task.pid, want, taken);
	uint64_t hold_ns;

	sf_hold_release(held);
	hold_ns = sf_hold_time_released(&capture->hold_time, thread->asked_ns);
	if (complete) {
		send_held(capture, thread, taken, hold_ns);
		return;
	}
	if (taken)
		sf_relay_drop(capture->relay);
	lose(capture, thread, taken ? SF_LOSS_GONE : SF_LOSS_RING_FULL);
}

/* A thread or child has ended while it was asked for. */
static void note_ended(struct sf_capture *capture, const struct sf_held *held)
{
	if (held->tid == capture->options.child) {
		capture->child_status = held->status;
		capture->child_ended = true;
	}
	capture->watch.next_scan_ns = 0;
}

/* Handles the next answer; false when none came before the alarm. */
static bool answer(struct sf_capture *capture, bool wait)
{
	struct sf_held held;
	struct sf_thread *thread;

	sf_hold_time_wait(&capture->hold_time);
	if (!sf_hold_wait(&held, wait)) {
		capture->hold_time.looked_ns = sf_now_ns();
		return false;
	}
	sf_hold_time_answer(&capture->hold_time);
	thread = sf_watch_find(&capture->watch, held.tid);
	if (thread && thread->asked) {
		thread->asked = false;
		capture->n_asked--;
	} else {
		thread = NULL; /* ended and started again meanwhile, or exec made it another's */
	}
	if (!held.stopped)
		note_ended(capture, &held);
	else if (thread)
		take_held(capture, thread, &held);
	else
		sf_hold_release(&held);
	return true;
}

static void ask(struct sf_capture *capture, struct sf_thread *thread, uint64_t now_ns)
{
	enum sf_hold result;

	if (capture->n_asked >= MAX_ASKED)
		return; /* its time goes on to the next tick */
	result = sf_hold_ask(thread->task.tid);
	if (result == SF_HOLD_ASKED) {
		thread->asked = true;
		thread->tick_ns = now_ns;
		thread->asked_ns = sf_now_ns();
		capture->n_asked++;
		return;
	}
	capture->refusal = result;
	capture->refused_tid = thread->task.tid;
	thread->awake_due_ns = now_ns + capture->period_ns;
	lose(capture, thread, result == SF_HOLD_GONE   ? SF_LOSS_GONE
			      : result == SF_HOLD_BUSY ? SF_LOSS_BUSY
						       : SF_LOSS_DENIED);
}

/* Waits for the threads that were just asked for, all of one CPU; late ones stay pending. */
static void wait_for_answers(struct sf_capture *capture, int n_pending)
{
	sf_alarm_set(sf_now_ns() + PATIENCE_NS);
	while (capture->n_asked > n_pending && answer(capture, true))
		;
}

/*
 * To the CPU of a thread, if it pays. Leaving a CPU idle makes the scheduler fetch the very thread
 * that we are about to displace there, and the hold goes across CPUs after all. So for the sake of a
 * single thread we move when the tick is over, before we sleep; with several awake, no CPU
 * is left idle. Reading where a thread is costs half as much as the whole hold, so that is
 * done only when the last hold took so long that it must have been elsewhere.
 */
static void move_to(struct sf_capture *capture, struct sf_thread *thread)
{
	int cpu = thread->cpu;

	if (cpu < 0 && sf_task_letter(thread->task.pid, thread->task.tid, &cpu))
		thread->cpu = (int16_t)cpu;
	if (capture->n_awake_before > 1 && cpu >= 0)
		sf_cpu_move(cpu);
	else
		capture->next_cpu = cpu;
}

static void hold_thread(struct sf_capture *capture, struct sf_thread *thread, uint64_t now_ns)
{
	int n_pending = capture->n_asked;

	move_to(capture, thread);
	ask(capture, thread, now_ns);
	wait_for_answers(capture, n_pending);
	if (thread->asked || sf_now_ns() - thread->asked_ns > ELSEWHERE_NS)
		thread->cpu = -1;
}

/* The sleep that the thread is in now has been interrupted once already. */
static bool was_held(const struct sf_thread *thread)
{
	return thread->held_sp == thread->look.sp && thread->held_pc == thread->look.pc &&
	       thread->held_syscall == thread->look.syscall;
}

/* In a job control stop (and not in a debugger's). */
static bool is_stopped(const struct sf_thread *thread)
{
	return sf_task_letter(thread->task.pid, thread->task.tid, NULL) == 'T';
}

static bool must_hold_asleep(const struct sf_capture *capture, const struct sf_thread *thread)
{
	if (capture->options.no_interrupt || !thread->look.placed || was_held(thread) ||
	    atomic_load_explicit(&thread->needs_hold, memory_order_relaxed) != thread->look.sp)
		return false;
	return sf_syscall_restarts(thread->task.pid, thread->look.syscall, thread->look.args) ||
	       is_stopped(thread);
}

static void hold_asleep(struct sf_capture *capture, struct sf_thread *thread, uint64_t now_ns)
{
	thread->held_sp = thread->look.sp;
	thread->held_pc = thread->look.pc;
	thread->held_syscall = thread->look.syscall;
	hold_thread(capture, thread, now_ns);
}

static void read_asleep(struct sf_capture *capture, struct sf_thread *thread, uint64_t now_ns)
{
	uint32_t want = atomic_load_explicit(&thread->want, memory_order_relaxed);
	struct sf_taken *taken = sf_relay_reserve(capture->relay, want);
	enum sf_take result = SF_TAKE_GONE;
	struct sf_weight weight;

	if (!taken) {
		lose(capture, thread, SF_LOSS_RING_FULL);
		return;
	}
	result = sf_take_asleep(&thread->task, &thread->look, want, taken);
	if (result != SF_TAKE_DONE && result != SF_TAKE_NOT_PLACED) {
		/* It woke up: this tick is one of an awake thread, at the next look. */
		sf_relay_drop(capture->relay);
		return;
	}
	if (result == SF_TAKE_NOT_PLACED)
		*taken = (struct sf_taken){ .pid = thread->task.pid, .tid = thread->task.tid,
					    .syscall = SF_SYSCALL_NONE,
					    .flags = SF_STILL_UNHELD };
	weight = sf_thread_take_asleep(thread, capture->blocked_period_ns);
	taken->state = state_asleep(thread);
	taken->time_ns = now_ns;
	sf_relay_send(capture->relay, thread, &weight, 0);
	thread->sampled = true;
}

static void sample_asleep(struct sf_capture *capture, struct sf_thread *thread, uint64_t now_ns)
{
	bool again = atomic_load_explicit(&thread->again, memory_order_relaxed);

	thread->asleep_due_ns = now_ns + jitter(capture, capture->blocked_period_ns);
	if (must_hold_asleep(capture, thread)) {
		hold_asleep(capture, thread, now_ns);
	} else if (thread->sampled && !again) {
		struct sf_weight weight = sf_thread_take_asleep(thread, capture->blocked_period_ns);

		sf_relay_again(capture->relay, thread, now_ns, &weight);
	} else {
		read_asleep(capture, thread, now_ns);
	}
}

/* Threads that have slept for long are looked at as often as they are sampled. */
static bool may_be_passed_over(const struct sf_capture *capture, const struct sf_thread *thread,
			       uint64_t now_ns)
{
	return thread->n_same >= LONG_ASLEEP && now_ns < thread->asleep_due_ns &&
	       now_ns - thread->seen_ns < 50000000 && capture->blocked_period_ns;
}

/* False when the thread is gone. */
static bool tick_thread(struct sf_capture *capture, struct sf_thread *thread, uint64_t now_ns)
{
	if (thread->asked || !thread->watched || may_be_passed_over(capture, thread, now_ns))
		return true;
	if (!sf_thread_look(thread, now_ns))
		return false;
	if (sf_thread_awake(thread)) {
		capture->n_awake++;
		if (capture->period_ns)
			hold_thread(capture, thread, now_ns);
	} else if (capture->blocked_period_ns && now_ns >= thread->asleep_due_ns) {
		sample_asleep(capture, thread, now_ns);
	}
	return true;
}

static void tick(struct sf_capture *capture, uint64_t now_ns)
{
	capture->n_awake_before = capture->n_awake;
	capture->n_awake = 0;
	capture->next_cpu = -1;
	for (size_t i = capture->watch.threads.n; i-- > 0;) {
		if (!tick_thread(capture, capture->watch.threads.items[i], now_ns))
			sf_watch_end_thread(&capture->watch, i, now_ns);
		while (capture->n_asked && answer(capture, false))
			;
	}
	if (capture->next_cpu >= 0)
		sf_cpu_move(capture->next_cpu);
}

/* Until the next tick, or as long as threads that were asked for answer late. */
static void rest(struct sf_capture *capture, uint64_t until_ns)
{
	if (!capture->n_asked) {
		sf_alarm_set(0);
		sf_sleep_until(until_ns);
		return;
	}
	sf_alarm_set(until_ns);
	while (capture->n_asked && sf_now_ns() < until_ns && answer(capture, true))
		;
	if (sf_now_ns() < until_ns)
		sf_sleep_until(until_ns);
}

static bool over(const struct sf_capture *capture, uint64_t start_ns, uint64_t now_ns)
{
	return atomic_load_explicit(&capture->stopped, memory_order_relaxed) ||
	       capture->child_ended || sf_relay_failed(capture->relay) ||
	       (capture->options.duration_ns && now_ns - start_ns >= capture->options.duration_ns);
}

static void sample_until_over(struct sf_capture *capture)
{
	uint64_t period_ns = capture->period_ns ? capture->period_ns : capture->blocked_period_ns;
	uint64_t start_ns = sf_now_ns(), next_ns = start_ns;

	for (;;) {
		uint64_t now_ns = sf_now_ns();

		if (over(capture, start_ns, now_ns) || !sf_watch_scan(&capture->watch, now_ns))
			return;
		tick(capture, now_ns);
		next_ns += jitter(capture, period_ns);
		if (next_ns < sf_now_ns())
			next_ns = sf_now_ns(); /* late: the ticks that were missed are in the weights */
		rest(capture, next_ns);
	}
}

/*
 * Threads that were asked for and have not stood by now: those that run answer at once. What is still
 * left sleeps so deeply that only the end of this thread lets go of it.
 */
static void let_all_go(struct sf_capture *capture)
{
	sf_alarm_set(sf_now_ns() + 20000000);
	while (capture->n_asked && answer(capture, true))
		;
	for (size_t i = 0; i < capture->watch.threads.n; i++) {
		struct sf_thread *thread = capture->watch.threads.items[i];

		if (thread->asked)
			lose(capture, thread, SF_LOSS_LATE);
		thread->asked = false;
	}
}

static bool run(struct sf_capture *capture, const struct sf_sink *sink, struct sf_error *err)
{
	bool fine;

	if (!sf_relay_open(sink, &capture->relay, err))
		return false;
	capture->watch.relay = capture->relay;
	if (!sf_alarm_open(err) || !sf_hold_time_open(&capture->hold_time, err)) {
		sf_alarm_close();
		sf_relay_close(capture->relay, NULL);
		return false;
	}
	sf_cpu_prefer(true);
	sample_until_over(capture);
	let_all_go(capture);
	sf_watch_end(&capture->watch, sf_now_ns());
	sf_hold_time_close(&capture->hold_time);
	sf_alarm_close();
	sf_cpu_move(-1);
	sf_cpu_prefer(false);
	fine = sf_relay_close(capture->relay, err);
	if (fine && !capture->held_any && capture->refused_tid && capture->refusal != SF_HOLD_GONE)
		return sf_hold_explain(capture->options.pid, capture->refused_tid, capture->refusal,
				       err);
	return fine;
}

const struct sf_engine sf_engine_ptrace = {
	.name = "ptrace",
	.summary = "holds one thread after another for the time that a copy of its stack takes",
	.check = check,
	.open = open_capture,
	.run = run,
	.stop = stop,
	.child_status = child_status,
	.close = close_capture,
};
