/* SPDX-License-Identifier: Apache-2.0 */
/* The looks at one thread of a target: what it does, and the time that its account is given. */
#include "capture/ptrace/thread.h"

#include <stdlib.h>
#include <string.h>

#include "capture/ptrace/stack_copy.h"
#include "frozen/signal/weight.h"
#include "os/clock.h"

/* From the timer's interrupt, which displaces a thread, until we look at the clock. */
#define WAKE_NS 20000
#define USE_NS 100000000     /* for which the use of CPUs is measured at a time */
#define MUCH 8               /* one part of the time of so many */
#define SOME 100             /* the same */
#define STACK_MAX ((uint64_t)8 << 20) /* of the stacks that the system makes (getrlimit(2)), unless they are told otherwise */
#define DEEP_FIRST (1u << 20)  /* bytes of the first copy of a deep stack, at most */
#define ROOT_SIZE 128u         /* bytes above the first frame's sp that a walk may read, as its return address */
#define BACK_NS 100000  /* of CPU time, within which a thread that was interrupted in its sleep is back in it */
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
	thread->seen_ns = thread->sleeps.met_ns = now_ns;
	thread->cpu = -1;
	atomic_init(&thread->needs.size, SF_COPY_FIRST);
	if (!sf_task_name(pid, tid, thread->name) || !sf_task_run(&thread->task, &thread->run) ||
	    !sf_task_look(&thread->task, &thread->look)) {
		sf_thread_destroy(thread);
		return NULL;
	}
	thread->first_cpu_ns = thread->kernel_time.counted_ns = thread->run.cpu_ns;
	sf_on_cpu_counted(&thread->on_cpu, thread->run.cpu_ns, sf_now_ns());
	thread->glance_switches = thread->run.switches;
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
	thread->seen_ns = thread->sleeps.met_ns = now_ns;
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

/*
 * Another thread of the process has executed a program. It has this one's id and its own counts since: these have fallen, or
 * have grown by more than the time that has passed since the thread's own count was exact.
 */
static bool is_of_another(const struct sf_thread *thread, const struct sf_task_run *run, uint64_t now_ns)
{
	const uint64_t exact_ns = thread->on_cpu.exact_ns;

	return run->cpu_ns < thread->run.cpu_ns || run->switches < thread->run.switches ||
	       (exact_ns && run->cpu_ns - thread->run.cpu_ns > now_ns - exact_ns + SF_ON_CPU_LATE_NS);
}

/* The other thread's CPU time until now is in its own account. */
static void take_over(struct sf_thread *thread, const struct sf_task_run *run)
{
	const uint64_t others_ns = run->cpu_ns - thread->run.cpu_ns; /* below zero, too */

	thread->first_cpu_ns += others_ns;
	thread->kernel_time.counted_ns += others_ns;
	thread->use.cpu_ns += others_ns;
	thread->use.switches += run->switches - thread->run.switches;
	thread->run = *run;
}

/* Returns the thread's counts before. */
static struct sf_task_run count_run(struct sf_thread *thread, const struct sf_task_run *run)
{
	const uint64_t now_ns = sf_now_ns();
	struct sf_task_run before;

	if (is_of_another(thread, run, now_ns))
		take_over(thread, run);
	before = thread->run;
	thread->account.cpu_ns += run->cpu_ns - before.cpu_ns;
	thread->run = *run;
	sf_on_cpu_counted(&thread->on_cpu, run->cpu_ns, now_ns);
	return before;
}

void sf_thread_take_over(struct sf_thread *thread, const struct sf_thread *other)
{
	struct sf_task_run run;

	thread->exited_ns = 0;
	if (other)
		take_over(thread, &other->run);
	else if (sf_task_run(&thread->task, &run))
		take_over(thread, &run);
}

/* After a hold in its sleep the thread may have gone to another one before its counts were read. */
static bool slept_on(const struct sf_thread *thread, const struct sf_task_run *run)
{
	return !sf_thread_awake(thread) && !thread->hold.is_new && run->switches == thread->run.switches &&
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

/* It waits for a CPU on which it goes back to the sleep in which it was interrupted, or is about to. */
static bool goes_back(const struct sf_thread *thread)
{
	return sf_thread_awake(thread) && thread->run.cpu_ns - thread->hold.cpu_ns <= BACK_NS;
}

/*
 * A thread that was interrupted in its sleep is looked at again. On its way back it is in that sleep still: another hold would
 * interrupt it once more. If it sleeps in the same place it has gone back to that sleep. On a machine whose CPUs are busy it
 * was put on a CPU more often for that than HOLD_SWITCHES.
 */
static void see_held(struct sf_thread *thread)
{
	const bool is_new = thread->hold.is_new && !thread->hold.is_requested;

	if (is_new && goes_back(thread)) {
		thread->look = thread->hold.sleep;
		return;
	}
	if (is_new && !sf_thread_awake(thread)) {
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
		sf_on_cpu_counted(&thread->on_cpu, run.cpu_ns, thread->looked_ns);
		sf_on_cpu_slept(&thread->on_cpu);
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

void sf_thread_count_look(struct sf_thread *thread, uint64_t now_ns)
{
	thread->n_looks++;
	thread->looked_for_ns += now_ns - thread->seen_ns;
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

uint64_t sf_thread_whole_size(struct sf_thread *thread, uint64_t sp)
{
	const uint64_t root_sp = atomic_load_explicit(&thread->needs.root_sp, memory_order_relaxed);

	if (!root_sp || sp > root_sp || atomic_load_explicit(&thread->needs.below_sp, memory_order_relaxed) ||
	    atomic_load_explicit(&thread->needs.leads.at[0], memory_order_relaxed))
		return 0;
	return root_sp - sp + ROOT_SIZE;
}

static bool has_settled(struct sf_thread *thread)
{
	return atomic_load_explicit(&thread->needs.n_same_root, memory_order_relaxed) >= SF_ROOT_SETTLED;
}

/* Bytes for its deep moments. Where none was copied yet, the first copy ends at the first frame, if that is known. */
static uint32_t deep_size(struct sf_thread *thread)
{
	const uint32_t size = atomic_load_explicit(&thread->needs.deep_size, memory_order_relaxed);

	return size || !has_settled(thread) ? size : DEEP_FIRST;
}

/* One that is deep at times is held for its deep moments. */
struct sf_copy_plan sf_thread_copy_plan(struct sf_thread *thread)
{
	const uint32_t size = atomic_load_explicit(&thread->needs.size, memory_order_relaxed);
	const uint32_t deep = thread->batch.n_held ? deep_size(thread) : 0;
	struct sf_copy_plan plan = sf_stack_leads_plan(&thread->needs.leads, size > deep ? size : deep);

	plan.root_sp = plan.n_leads ? 0 : atomic_load_explicit(&thread->needs.root_sp, memory_order_relaxed);
	return plan;
}

bool sf_thread_is_deeper(struct sf_thread *thread, uint64_t sp, uint32_t bytes)
{
	const uint64_t size = sf_thread_whole_size(thread, sp);

	return size > bytes && size <= STACK_MAX && has_settled(thread);
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

/*
 * The thread that was displaced stands where it ran then. If that took longer than a call that only waits, a thread in
 * such a call has come there since.
 */
static bool is_where_displaced(const struct sf_thread *thread, bool in_call, bool in_wait)
{
	return thread->hold.displaced == SF_DISPLACED_ANYWHERE || (thread->hold.displaced == SF_DISPLACED_IN_CALL && in_call && !in_wait);
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
	return is_where_displaced(thread, in_call, in_wait) ||
	       (is_evidence(thread, in_wait, stood_ns, waited_ns) && was_on_cpu(thread, stood_ns, waited_ns));
}

/* The time from `before` on that the kernel counts as run, or as a wait for a CPU. */
static int64_t awake_since(const struct sf_thread *thread, const struct sf_task_run *before)
{
	const struct sf_task_run *run = &thread->run;

	return (run->cpu_ns > before->cpu_ns ? (int64_t)(run->cpu_ns - before->cpu_ns) : 0) +
	       (run->wait_ns > before->wait_ns ? (int64_t)(run->wait_ns - before->wait_ns) : 0);
}

/*
 * The thread ran or waited for a CPU until it stood, and was stopped from then on. `stopped_ns` is an upper bound:
 * it may have a part of the time before. sf_thread_measure() will count all elapsed time that is not awake as asleep.
 */
void sf_thread_add_hold(struct sf_thread *thread, const struct sf_task_run *before, uint64_t stopped_ns, uint64_t now_ns)
{
	const int64_t requested_ns = (int64_t)(now_ns - thread->hold.requested_ns), elapsed_ns = (int64_t)(now_ns - thread->seen_ns);
	int64_t awake_ns = awake_since(thread, before) + (int64_t)stopped_ns;

	if (awake_ns > elapsed_ns)
		awake_ns = elapsed_ns;
	if (awake_ns < requested_ns)
		awake_ns = requested_ns;
	thread->account.awake_ns += awake_ns;
	thread->account.asleep_ns -= awake_ns;
}

void sf_thread_sleep_until(struct sf_thread *thread, uint64_t now_ns)
{
	sf_thread_add_elapsed(thread, now_ns);
	sf_thread_balance(thread);
}

/*
 * Linux 6.12 and later may give a sleeping thread to another CPU before its run queue has let go of it, and count the whole sleep
 * as a wait for a CPU then. No thread that slept when it was last seen is taken to have waited for longer than the longest wait.
 */
bool sf_thread_measure(struct sf_thread *thread, uint64_t now_ns, bool *ran_ret)
{
	const int64_t elapsed_ns = (int64_t)(now_ns - thread->seen_ns);
	struct sf_task_run run, before;
	int64_t awake_ns;

	if (thread->exited_ns || !sf_task_run(&thread->task, &run))
		return false;
	*ran_ret = run.switches != thread->run.switches || run.cpu_ns != thread->run.cpu_ns;
	before = count_run(thread, &run);
	awake_ns = awake_since(thread, &before);
	if (!sf_thread_awake(thread) && awake_ns > SF_LONGEST_WAIT_NS && awake_ns > elapsed_ns)
		awake_ns = elapsed_ns > SF_LONGEST_WAIT_NS ? elapsed_ns : SF_LONGEST_WAIT_NS;
	thread->account.awake_ns += awake_ns;
	thread->account.asleep_ns += elapsed_ns - awake_ns;
	thread->seen_ns = now_ns;
	if (*ran_ret) {
		thread->n_same = 0;
		thread->look = (struct sf_task_look){ .state = SF_STATE_RUNNING, .syscall = SF_SYSCALL_NONE };
		return true;
	}
	if (!sf_thread_awake(thread))
		sf_on_cpu_slept(&thread->on_cpu);
	if (thread->n_same < UINT8_MAX)
		thread->n_same++;
	return true;
}

bool sf_thread_measure_and_look(struct sf_thread *thread, uint64_t now_ns)
{
	bool ran;

	if (!sf_thread_measure(thread, now_ns, &ran))
		return false;
	if (!sf_thread_awake(thread) && !thread->hold.is_new)
		return true;
	if (!sf_task_look(&thread->task, &thread->look))
		return false;
	see_held(thread);
	return true;
}
