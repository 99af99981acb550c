/* SPDX-License-Identifier: Apache-2.0 */
/* The account of a thread: its CPU time by the kernel's records of its switches, and what samples take. */
#include "capture/ptrace/account.h"

#include "capture/ptrace/thread.h"
#include "frozen/signal/ticks.h"
#include "os/clock.h"

#define KEPT_PERIODS 4       /* of CPU time in the kernel, for samples in system calls that are to come */
#define MOST_OWED_PERIODS 40 /* of it, that samples in system calls may lack */
#define OVERDUE_PERIODS 40      /* of CPU time without a sample */
#define OVERDUE_PERIODS_FIRST 4 /* ... of a thread that has none yet */

/* --- the CPU time by the records of switches --- */

void sf_on_cpu_counted(struct sf_on_cpu *on_cpu, uint64_t cpu_ns, uint64_t now_ns)
{
	if (cpu_ns != on_cpu->cpu_ns)
		on_cpu->exact_ns = on_cpu->counted_ns;
	on_cpu->cpu_ns = cpu_ns;
	on_cpu->counted_ns = now_ns;
	on_cpu->ran_ns = on_cpu->late_ns = 0;
}

/* The count was read when the thread had run for so long. */
static uint64_t late(uint64_t ran_ns)
{
	return ran_ns < SF_ON_CPU_LATE_NS ? ran_ns : SF_ON_CPU_LATE_NS;
}

void sf_on_cpu_switch(struct sf_on_cpu *on_cpu, uint64_t time_ns, bool leaves)
{
	const bool is_first = !on_cpu->is_followed;
	const uint64_t counted_ns = on_cpu->counted_ns, since_ns = is_first ? counted_ns : on_cpu->since_ns;

	on_cpu->is_followed = true;
	on_cpu->since_ns = leaves ? 0 : time_ns;
	if (!leaves || !since_ns || time_ns <= counted_ns)
		return;
	if (since_ns <= counted_ns)
		on_cpu->late_ns = is_first ? SF_ON_CPU_LATE_NS : late(counted_ns - since_ns);
	on_cpu->ran_ns += time_ns - (since_ns > counted_ns ? since_ns : counted_ns);
}

/*
 * How much more the kernel's record of the end may say: no thread runs for longer than the time that has passed. Where
 * switches are recorded, that record may be wrong. Then what the kernel's count lacks is taken from it, and no more.
 */
static uint64_t most_of(const struct sf_on_cpu *on_cpu, const struct sf_switches *switches, uint64_t now_ns)
{
	if (!on_cpu->counted_ns)
		return UINT64_MAX;
	if (!switches->are_recorded)
		return now_ns - on_cpu->counted_ns + SF_ON_CPU_LATE_NS;
	return sf_on_cpu_is_complete(on_cpu, switches) ? on_cpu->late_ns : SF_ON_CPU_LATE_NS;
}

uint64_t sf_on_cpu_end(const struct sf_on_cpu *on_cpu, uint64_t ended_ns, const struct sf_switches *switches, uint64_t now_ns)
{
	const uint64_t least_ns = on_cpu->cpu_ns + (sf_on_cpu_is_complete(on_cpu, switches) ? on_cpu->ran_ns : 0);
	const uint64_t more_ns = ended_ns > least_ns ? ended_ns - least_ns : 0;

	return more_ns <= most_of(on_cpu, switches, now_ns) ? least_ns + more_ns : least_ns;
}

void sf_thread_add_cpu(struct sf_thread *thread, uint64_t cpu_ns)
{
	thread->run.cpu_ns += cpu_ns;
	thread->account.cpu_ns += cpu_ns;
	thread->account.awake_ns += (int64_t)cpu_ns;
}

void sf_thread_begin_again(struct sf_thread *thread)
{
	bool ran;

	(void)sf_thread_measure(thread, sf_now_ns(), &ran);
	thread->first_cpu_ns += thread->account.cpu_ns + thread->account.beyond_ns;
	thread->account = (struct sf_thread_account){ 0 };
}

bool sf_thread_settle_end(struct sf_thread *thread, const struct sf_switches *switches)
{
	const uint64_t end_ns = sf_on_cpu_end(&thread->on_cpu, thread->ended_cpu_ns, switches, sf_now_ns());

	if (end_ns <= thread->run.cpu_ns)
		return false;
	sf_thread_add_cpu(thread, end_ns - thread->run.cpu_ns);
	return true;
}

/* --- what samples take --- */

static uint64_t least(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
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
	struct sf_weight weight = { .cpu_ns = on_cpu ? thread->account.cpu_ns : 0, .since_last = on_cpu };
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

void sf_thread_take_off_sleep(struct sf_thread *thread, uint64_t ns, uint64_t end_ns)
{
	const uint64_t met_ns = thread->sleeps.met_ns, in_sight_ns = end_ns > met_ns ? least(ns, end_ns - met_ns) : 0;

	thread->account.asleep_ns -= (int64_t)in_sight_ns;
}

struct sf_weight sf_thread_take_sleep(struct sf_thread *thread, uint64_t ns, uint64_t period_ns)
{
	const struct sf_weight weight = { .wall_ns = ns, .ticks = sf_ticks_take(&thread->account.asleep_over_ns, ns, period_ns) };

	thread->sleeps.sampled_ns += ns;
	return weight;
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

/* CPU time, and its part of the time awake. */
static struct sf_weight take_part(struct sf_thread *thread, uint64_t cpu_ns, uint64_t part, uint64_t whole, uint64_t period_ns)
{
	struct sf_weight weight = { .cpu_ns = cpu_ns };
	int64_t awake_ns = thread->account.awake_ns - (int64_t)thread->account.beyond_ns;

	if ((int64_t)cpu_ns > awake_ns)
		borrow(thread, (int64_t)cpu_ns - awake_ns);
	awake_ns = thread->account.awake_ns - (int64_t)thread->account.beyond_ns;
	awake_ns = awake_ns > 0 ? (int64_t)((__int128)awake_ns * part / whole) : 0;
	weight.wall_ns = awake_ns > (int64_t)cpu_ns ? (uint64_t)awake_ns : cpu_ns;
	weight.ticks = sf_ticks_take(&thread->account.awake_over_ns, weight.wall_ns, period_ns);
	thread->account.awake_ns -= (int64_t)weight.wall_ns;
	thread->account.cpu_ns -= weight.cpu_ns;
	return weight;
}

struct sf_weight sf_thread_take_share(struct sf_thread *thread, uint32_t n, uint64_t period_ns)
{
	return take_part(thread, thread->account.cpu_ns / n, 1, n, period_ns);
}

struct sf_weight sf_thread_take_held(struct sf_thread *thread, uint64_t period_ns)
{
	const uint64_t all_ns = thread->account.cpu_ns, held_ns = least(thread->batch.held_ns, all_ns);

	thread->batch.n_held = 0;
	return take_part(thread, held_ns, held_ns, all_ns ? all_ns : 1, period_ns);
}

bool sf_thread_is_overdue(const struct sf_thread *thread, uint64_t period_ns)
{
	const uint64_t most_ns = (thread->ran ? OVERDUE_PERIODS : OVERDUE_PERIODS_FIRST) * period_ns;
	const uint64_t sampled_ns = thread->run.cpu_ns - thread->first_cpu_ns - thread->account.cpu_ns;

	return thread->account.cpu_ns >= (thread->use.is_much || sampled_ns > most_ns ? most_ns : sampled_ns);
}
