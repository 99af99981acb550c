/* SPDX-License-Identifier: Apache-2.0 */
/* The looks at one thread of a target, and its accounts of CPU time and elapsed time. */
#include "capture/ptrace/thread.h"

#include <stdlib.h>
#include <string.h>

#include "capture/ptrace/stack_copy.h"
#include "frozen/signal/ticks.h"
#include "os/clock.h"

/* From the timer's interrupt, which displaces a thread, until we look at the clock. */
#define WAKE_NS 20000
#define KEPT_PERIODS 4       /* of CPU time in the kernel, for samples in system calls that are to come */
#define MOST_OWED_PERIODS 40 /* of it, that samples in system calls may lack */
#define USE_NS 100000000     /* for which the use of CPUs is measured at a time */
#define MUCH 8               /* one part of the time of so many */
#define SOME 100             /* the same */
#define HOLD_SWITCHES 2 /* a thread that is interrupted in its sleep is put on a CPU to stop, and to sleep again */

struct sf_thread *sf_thread_create(uint32_t serial, int32_t pid, int32_t tid, uint64_t now_ns)
{
	struct sf_thread *thread = calloc(1, sizeof(*thread));

	if (!thread)
		return NULL;
	if (!sf_task_open(pid, tid, &thread->task)) {
		free(thread);
		return NULL;
	}
	thread->serial = serial;
	thread->seen_ns = now_ns;
	thread->cpu = -1;
	atomic_init(&thread->needs.size, SF_COPY_FIRST);
	if (!sf_task_name(pid, tid, thread->name) || !sf_task_run(&thread->task, &thread->run) ||
	    !sf_task_look(&thread->task, &thread->look)) {
		sf_thread_destroy(thread);
		return NULL;
	}
	thread->first_cpu_ns = thread->kernel_time.counted_ns = thread->run.cpu_ns;
	sf_on_cpu_counted(&thread->on_cpu, thread->run.cpu_ns, sf_now_ns());
	thread->use.from_ns = now_ns;
	thread->use.cpu_ns = thread->run.cpu_ns;
	thread->use.switches = thread->run.switches;
	return thread;
}

struct sf_thread *sf_thread_create_ended(uint32_t serial, int32_t pid, int32_t tid, const char *name, uint64_t now_ns)
{
	struct sf_thread *thread = calloc(1, sizeof(*thread));

	if (!thread)
		return NULL;
	thread->task = SF_TASK_CLOSED(pid, tid);
	thread->serial = serial;
	thread->seen_ns = now_ns;
	thread->cpu = -1;
	thread->look = (struct sf_task_look){ .state = SF_STATE_RUNNING, .syscall = SF_SYSCALL_NONE };
	memccpy(thread->name, name, 0, sizeof(thread->name) - 1);
	atomic_init(&thread->needs.size, SF_COPY_FIRST);
	return thread;
}

void sf_thread_destroy(struct sf_thread *thread)
{
	sf_task_close(&thread->task);
	free(thread->sleep.record);
	free(thread);
}

/* Less than before: another thread has executed a program, and has this one's id and its own count since. */
static void count_run(struct sf_thread *thread, const struct sf_task_run *run)
{
	if (run->cpu_ns > thread->run.cpu_ns)
		thread->account.cpu_ns += run->cpu_ns - thread->run.cpu_ns;
	else
		thread->first_cpu_ns -= thread->run.cpu_ns - run->cpu_ns;
	thread->run = *run;
	sf_on_cpu_counted(&thread->on_cpu, thread->run.cpu_ns, sf_now_ns());
}

static bool slept_on(const struct sf_thread *thread, const struct sf_task_run *run)
{
	return !sf_thread_awake(thread) && run->switches == thread->run.switches &&
	       run->cpu_ns == thread->run.cpu_ns;
}

void sf_thread_add_elapsed(struct sf_thread *thread, uint64_t now_ns)
{
	if (sf_thread_awake(thread))
		thread->account.awake_ns += (int64_t)(now_ns - thread->seen_ns);
	else
		thread->account.asleep_ns += (int64_t)(now_ns - thread->seen_ns);
	thread->seen_ns = now_ns;
}

bool sf_thread_was_held(const struct sf_thread *thread)
{
	return sf_task_same_place(&thread->hold.sleep, &thread->look) &&
	       thread->run.switches - thread->hold.switches <= HOLD_SWITCHES;
}

/*
 * A thread that was interrupted in its sleep is looked at again. If it sleeps in the same place it has gone back to
 * that sleep. On a machine whose CPUs are busy it was put on a CPU more often for that than HOLD_SWITCHES.
 */
static void see_held(struct sf_thread *thread)
{
	if (thread->hold.is_new && !thread->hold.is_requested && !sf_thread_awake(thread)) {
		thread->hold.is_new = false;
		if (sf_task_same_place(&thread->hold.sleep, &thread->look))
			thread->hold.switches = thread->run.switches;
	}
	thread->sampled = thread->sampled && sf_thread_was_held(thread);
}

bool sf_thread_look(struct sf_thread *thread, uint64_t now_ns)
{
	struct sf_task_run run;

	thread->looked_ns = sf_now_ns();
	if (!sf_task_run(&thread->task, &run))
		return false;
	if (slept_on(thread, &run)) {
		sf_thread_add_elapsed(thread, now_ns);
		if (thread->n_same < UINT8_MAX)
			thread->n_same++;
		return true;
	}
	count_run(thread, &run);
	thread->n_same = 0;
	if (!sf_task_look(&thread->task, &thread->look))
		return false;
	see_held(thread);
	sf_thread_add_elapsed(thread, now_ns);
	return true;
}

void sf_thread_measure_use(struct sf_thread *thread)
{
	struct sf_thread_use *use = &thread->use;
	const uint64_t ns = thread->seen_ns - use->from_ns, cpu_ns = thread->run.cpu_ns - use->cpu_ns;

	if (ns < USE_NS)
		return;
	use->is_much = cpu_ns * MUCH > ns;
	use->is_some = cpu_ns * SOME > ns;
	use->turns_are_short = cpu_ns < (thread->run.switches - use->switches) * SF_SHORT_TURN_NS;
	use->from_ns = thread->seen_ns;
	use->cpu_ns = thread->run.cpu_ns;
	use->switches = thread->run.switches;
}

void sf_thread_note_place(struct sf_thread *thread, bool in_call)
{
	thread->use.in_calls = (uint8_t)(thread->use.in_calls - thread->use.in_calls / 8 + (in_call ? 31 : 0));
}

bool sf_thread_sleeps_again(struct sf_thread *thread, uint64_t now_ns)
{
	struct sf_task_look look;

	if (sf_thread_awake(thread) || thread->n_same || !sf_task_look(&thread->task, &look) || look.state == SF_STATE_RUNNING)
		return false;
	sf_thread_add_elapsed(thread, now_ns);
	return true;
}

/*
 * A wait that began with the tick is of our making, or after the thread was looked at: then we came to its CPU. Any other was
 * under way when it was looked at, also of one that woke, or gave its CPU away, since the tick.
 */
static bool was_on_cpu(const struct sf_thread *thread, uint64_t stood_ns, uint64_t waited_ns)
{
	const uint64_t began_ns = stood_ns - waited_ns;

	return began_ns >= thread->looked_ns ||
	       (began_ns + WAKE_NS >= thread->hold.tick_ns && began_ns <= thread->hold.tick_ns + WAKE_NS);
}

/*
 * A thread in a wait that waited for a CPU since it was looked at has woken up, or gave its CPU away, and has computed
 * nothing since. That holds also where the interrupt that began the tick woke it: the kernel serves many timers in one
 * interrupt. Without such a wait, a prompt stop finds it where it was.
 */
static bool is_evidence(const struct sf_thread *thread, bool in_wait, uint64_t stood_ns, uint64_t waited_ns)
{
	return !in_wait || (!waited_ns && stood_ns <= thread->hold.requested_ns + SF_PROMPT_NS);
}

/* The thread that was displaced stands where it ran then. */
static bool is_where_displaced(const struct sf_thread *thread, bool in_call)
{
	return thread->hold.displaced == SF_DISPLACED_ANYWHERE || (thread->hold.displaced == SF_DISPLACED_IN_CALL && in_call);
}

/* The kernel adds a wait for a CPU to wait_ns when it is over, and for a thread that stands it is. */
bool sf_thread_settle(struct sf_thread *thread, uint64_t stood_ns, bool in_call, bool in_wait)
{
	struct sf_task_run run;
	uint64_t waited_ns;

	if (!sf_task_run(&thread->task, &run))
		return true;
	waited_ns = run.wait_ns - thread->run.wait_ns;
	count_run(thread, &run);
	return is_where_displaced(thread, in_call) ||
	       (is_evidence(thread, in_wait, stood_ns, waited_ns) && was_on_cpu(thread, stood_ns, waited_ns));
}

/* The time from `before` on that the kernel counts as run, or as a wait for a CPU. */
static int64_t awake_since(const struct sf_thread *thread, const struct sf_task_run *before)
{
	const struct sf_task_run *run = &thread->run;

	return (run->cpu_ns > before->cpu_ns ? (int64_t)(run->cpu_ns - before->cpu_ns) : 0) +
	       (run->wait_ns > before->wait_ns ? (int64_t)(run->wait_ns - before->wait_ns) : 0);
}

/* sf_thread_measure() will count all elapsed time that is not awake as asleep. */
void sf_thread_add_hold(struct sf_thread *thread, const struct sf_task_run *before, uint64_t ns)
{
	int64_t awake_ns = awake_since(thread, before);

	if (awake_ns < (int64_t)ns)
		awake_ns = (int64_t)ns;
	thread->account.awake_ns += awake_ns;
	thread->account.asleep_ns -= awake_ns;
}

void sf_thread_add_cpu(struct sf_thread *thread, uint64_t cpu_ns)
{
	thread->run.cpu_ns += cpu_ns;
	thread->account.cpu_ns += cpu_ns;
	thread->account.awake_ns += (int64_t)cpu_ns;
}

bool sf_thread_settle_end(struct sf_thread *thread, const struct sf_switches *switches)
{
	const uint64_t end_ns = sf_on_cpu_end(&thread->on_cpu, thread->ended_cpu_ns, switches, sf_now_ns());

	if (end_ns <= thread->run.cpu_ns)
		return false;
	sf_thread_add_cpu(thread, end_ns - thread->run.cpu_ns);
	return true;
}

/* Pays what CPU time is longer than the time awake from the time asleep, as far as that goes. */
static void borrow(struct sf_thread *thread, int64_t more_ns)
{
	int64_t from_ns = thread->account.asleep_ns < more_ns ? thread->account.asleep_ns : more_ns;

	if (from_ns <= 0)
		return;
	thread->account.asleep_ns -= from_ns;
	thread->account.awake_ns += from_ns;
}

/* The time awake that was not on a CPU. The rest belongs to the samples that will take cpu_ns. */
static uint64_t ns_without_cpu(const struct sf_thread *thread)
{
	const int64_t waited_ns = thread->account.awake_ns - (int64_t)thread->account.cpu_ns;

	return waited_ns > 0 ? (uint64_t)waited_ns : 0;
}

void sf_thread_balance(struct sf_thread *thread)
{
	borrow(thread, (int64_t)thread->account.cpu_ns - thread->account.awake_ns);
}

struct sf_weight sf_thread_take_awake(struct sf_thread *thread, bool on_cpu, uint64_t period_ns)
{
	struct sf_weight weight = { .cpu_ns = on_cpu ? thread->account.cpu_ns : 0 };
	int64_t cpu_ns = (int64_t)weight.cpu_ns;

	if (on_cpu) {
		borrow(thread, cpu_ns - thread->account.awake_ns);
		weight.wall_ns = (uint64_t)(thread->account.awake_ns > cpu_ns ? thread->account.awake_ns : cpu_ns);
	} else {
		weight.wall_ns = ns_without_cpu(thread);
	}
	weight.ticks = sf_ticks_take(&thread->account.awake_over_ns, weight.wall_ns, period_ns);
	thread->account.awake_ns -= (int64_t)weight.wall_ns;
	thread->account.cpu_ns -= weight.cpu_ns;
	return weight;
}

/* CPU time beyond the time awake belongs to the samples that will take it (borrow()). */
struct sf_weight sf_thread_take_asleep(struct sf_thread *thread, uint64_t period_ns)
{
	const int64_t owed_ns = (int64_t)thread->account.cpu_ns - thread->account.awake_ns;
	const int64_t free_ns = thread->account.asleep_ns - (owed_ns > 0 ? owed_ns : 0);
	const uint64_t asleep_ns = free_ns > 0 ? (uint64_t)free_ns : 0;
	struct sf_weight weight = {
		.wall_ns = asleep_ns,
		.ticks = sf_ticks_take(&thread->account.asleep_over_ns, asleep_ns, period_ns),
	};

	thread->account.asleep_ns -= (int64_t)asleep_ns;
	thread->sleeps.sampled_ns += asleep_ns;
	return weight;
}

struct sf_weight sf_thread_take_sleep(struct sf_thread *thread, uint64_t ns, uint64_t period_ns)
{
	const struct sf_weight weight = { .wall_ns = ns, .ticks = sf_ticks_take(&thread->account.asleep_over_ns, ns, period_ns) };

	thread->sleeps.sampled_ns += ns;
	return weight;
}

void sf_thread_sleep_until(struct sf_thread *thread, uint64_t now_ns)
{
	sf_thread_add_elapsed(thread, now_ns);
	sf_thread_balance(thread);
}

bool sf_thread_measure(struct sf_thread *thread, uint64_t now_ns, bool *ran_ret)
{
	const struct sf_task_run before = thread->run;
	int64_t awake_ns;
	struct sf_task_run run;

	if (!sf_task_run(&thread->task, &run))
		return false;
	*ran_ret = run.switches != before.switches || run.cpu_ns != before.cpu_ns;
	count_run(thread, &run);
	awake_ns = awake_since(thread, &before);
	thread->account.awake_ns += awake_ns;
	thread->account.asleep_ns += (int64_t)(now_ns - thread->seen_ns) - awake_ns;
	thread->seen_ns = now_ns;
	if (*ran_ret) {
		thread->n_same = 0;
		thread->look = (struct sf_task_look){ .state = SF_STATE_RUNNING, .syscall = SF_SYSCALL_NONE };
	} else if (thread->n_same < UINT8_MAX) {
		thread->n_same++;
	}
	return true;
}

bool sf_thread_measure_and_look(struct sf_thread *thread, uint64_t now_ns)
{
	bool ran;

	if (!sf_thread_measure(thread, now_ns, &ran))
		return false;
	if (!sf_thread_awake(thread))
		return true;
	if (!sf_task_look(&thread->task, &thread->look))
		return false;
	see_held(thread);
	return true;
}

/* `cpu_ns` of the time beyond, and the time awake that is no other CPU time. */
static struct sf_weight take_beyond(struct sf_thread *thread, uint64_t cpu_ns, uint64_t period_ns)
{
	const int64_t others_ns = (int64_t)(thread->account.cpu_ns + thread->account.beyond_ns - cpu_ns);
	const int64_t free_ns = thread->account.awake_ns - others_ns;
	struct sf_weight weight = { .cpu_ns = cpu_ns };

	weight.wall_ns = free_ns > (int64_t)cpu_ns ? (uint64_t)free_ns : cpu_ns;
	weight.ticks = sf_ticks_take(&thread->account.awake_over_ns, weight.wall_ns, period_ns);
	thread->account.awake_ns -= (int64_t)weight.wall_ns;
	thread->account.beyond_ns -= cpu_ns;
	return weight;
}

static uint64_t least(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/*
 * The time beyond that a sample leaves. The last two periods may be of user mode: one whose sample is not read yet, and one
 * whose sample is to come. A sample amid the thread's own code also leaves what samples in calls lack, and as much as one
 * of them would take now: samples in calls come at random, and each takes all that was used since the last hold.
 */
static uint64_t time_to_leave(const struct sf_thread *thread, bool in_call, uint64_t period_ns)
{
	const struct sf_kernel_time *time = &thread->kernel_time;

	return in_call ? 2 * period_ns : KEPT_PERIODS * period_ns + time->owed_ns + thread->run.cpu_ns - time->counted_ns;
}

bool sf_thread_take_kernel_time(struct sf_thread *thread, bool in_call, uint64_t period_ns, struct sf_weight *ret)
{
	struct sf_kernel_time *time = &thread->kernel_time;
	const uint64_t left_ns = time_to_leave(thread, in_call, period_ns);
	const uint64_t has_ns = thread->account.beyond_ns > left_ns ? thread->account.beyond_ns - left_ns : 0;
	uint64_t cpu_ns = has_ns;

	if (in_call) {
		time->owed_ns = least(time->owed_ns + thread->run.cpu_ns - time->counted_ns, MOST_OWED_PERIODS * period_ns);
		cpu_ns = least(time->owed_ns, has_ns);
		time->owed_ns -= cpu_ns;
	}
	time->counted_ns = thread->run.cpu_ns;
	if (cpu_ns)
		*ret = take_beyond(thread, cpu_ns, period_ns);
	return cpu_ns;
}

struct sf_weight sf_thread_take_share(struct sf_thread *thread, uint32_t n, uint64_t period_ns)
{
	struct sf_weight weight = { .cpu_ns = thread->account.cpu_ns / n };
	const int64_t cpu_ns = (int64_t)weight.cpu_ns;
	int64_t awake_ns = thread->account.awake_ns - (int64_t)thread->account.beyond_ns;

	if (cpu_ns > awake_ns)
		borrow(thread, cpu_ns - awake_ns);
	awake_ns = thread->account.awake_ns - (int64_t)thread->account.beyond_ns;
	weight.wall_ns = (uint64_t)(awake_ns / (int64_t)n > cpu_ns ? awake_ns / (int64_t)n : cpu_ns);
	weight.ticks = sf_ticks_take(&thread->account.awake_over_ns, weight.wall_ns, period_ns);
	thread->account.awake_ns -= (int64_t)weight.wall_ns;
	thread->account.cpu_ns -= weight.cpu_ns;
	return weight;
}
