/* SPDX-License-Identifier: Apache-2.0 */
/* Follows the sleeps of threads by the kernel's records of switches and wakings, from batch to batch. */
#include "capture/perf/sleeps.h"

#include <stdlib.h>
#include <string.h>

#include "capture/perf/perf.h"
#include "capture/perf/sleep_sample.h"
#include "capture/perf/stacks.h"
#include "os/clock.h"

#define MAX_KEPT_BYTES ((uint64_t)64 << 20) /* of records of sleeps that are too short as yet: what is more has no sample */
#define LOADS_NS 100000000    /* after the start of a command its loader runs, as a rule ... */
#define STARTS_NS 300000000   /* ... and then it shows how deep its threads sleep */
#define EXTEND_NS 500000000   /* the time of a sleep that goes on is added so often */
#define MAX_FULL_LOOKS 50     /* at how deep the stacks of full copies are: each reads the mappings of a process */

/* --- records --- */

static bool may_have_sleeps(const struct sf_thread *thread)
{
	return thread && sf_thread_is_sampled(thread) && !thread->only_awake && !thread->is_32_bit;
}

/* While a command starts, copies may be longer than they are to be later. */
static uint32_t full_size(const struct sf_perf_sleeps *sleeps)
{
	return sleeps->later_bytes ? sleeps->later_bytes : sleeps->switches.stack_bytes;
}

static void note_full(struct sf_perf_sleeps *sleeps, const struct sf_perf_record *record)
{
	struct sf_perf_full *full = &sleeps->full;
	struct sf_regs regs;

	if (record->stack_size < full_size(sleeps) || full->n == SF_PERF_FULL || (full->n && full->pid != record->pid))
		return;
	full->pid = record->pid;
	sf_perf_load_regs(record->regs, &regs);
	full->sps[full->n++] = regs.r[sf_arch_host()->sp];
}

/* Keeps the place of the record of the thread's stack: the next record says whether the thread goes to sleep now. */
static void note_stack(struct sf_perf *perf, struct sf_thread *thread, uint32_t ring, const struct sf_perf_record *record)
{
	sf_perf_sleep_forget(thread);
	thread->sleep.to_read = record->regs && (record->stack_size == record->stack_room || sf_perf_holes_note(perf, thread, record));
	thread->sleep.left_ns = record->time_ns;
	thread->sleep.place = perf->sleeps.switches.rings[ring].next;
	thread->sleep.ring = ring;
	thread->sleep.batch = sf_vec_push(&perf->sleeps.noted, thread) ? perf->sleeps.n_batch : 0;
	if (record->regs)
		note_full(&perf->sleeps, record);
}

/*
 * Of a thread with a deep stack, or with several, the kernel's copies are not enough. It is also held for its samples,
 * and each hold is a sleep.
 */
static bool is_copied_whole(const struct sf_thread *thread)
{
	return !sf_perf_stack_is_longest(atomic_load_explicit(&thread->needs.only_cut, memory_order_relaxed)) &&
	       !sf_thread_needs_longer_copies(thread);
}

/*
 * A thread that goes to sleep, and of whose stack not enough is known, is looked at. While longer copies take the place
 * of shorter ones each switch is recorded twice: both stacks, and then both records of leaving.
 */
static void leave(struct sf_perf *perf, struct sf_thread *thread, const struct sf_perf_record *record)
{
	struct sf_sleep *sleep = &thread->sleep;
	const bool has_record = sleep->batch == perf->sleeps.n_batch || sleep->record;

	if (sleep->start_ns)
		return;
	thread->sleeps.are_recorded = record->is_preempted || (is_copied_whole(thread) && has_record);
	if (record->is_preempted || !thread->sleeps.are_recorded) {
		sf_perf_sleep_forget(thread);
		return;
	}
	sleep->start_ns = sleep->left_ns; /* the kernel has taken the copy since */
	sleep->before_ns = thread->sleeps.sampled_ns;
}

static bool is_of_switch(const struct sf_perf_record *record)
{
	return record->tid > 0 && (record->type == PERF_RECORD_SAMPLE || record->type == PERF_RECORD_SWITCH ||
				   record->type == PERF_RECORD_SWITCH_CPU_WIDE);
}

/* Records from just before the events paused say nothing of what the threads do in the pause. */
void sf_perf_sleeps_switch(struct sf_perf *perf, uint32_t ring, const struct sf_perf_record *record, uint64_t now_ns)
{
	struct sf_thread *thread;

	if (record->type == PERF_RECORD_LOST) {
		perf->sleeps.n_lost += record->n_lost;
		perf->sleeps.lost_some = true;
	}
	if (perf->sleeps.paused_until_ns || !is_of_switch(record))
		return;
	perf->sleeps.n_switches += record->type == PERF_RECORD_SAMPLE;
	perf->sleeps.n_copied += record->stack_size;
	thread = sf_perf_thread_of(perf, record, record->type == PERF_RECORD_SAMPLE, now_ns);
	if (thread && record->type != PERF_RECORD_SAMPLE)
		sf_on_cpu_switch(&thread->on_cpu, record->time_ns, record->leaves);
	if (!may_have_sleeps(thread) || record->time_ns < thread->sleeps.from_ns)
		return;
	if (record->type == PERF_RECORD_SAMPLE) {
		note_stack(perf, thread, ring, record);
	} else if (record->leaves) {
		leave(perf, thread, record);
	} else {
		thread->sleeps.are_recorded = true;
		if (thread->sleep.start_ns && record->time_ns >= thread->sleep.start_ns)
			sf_perf_sleep_finish(perf, thread, record->time_ns, now_ns);
	}
}

/*
 * In an interrupt the thread that is interrupted has nothing to do with it: TRACE_FLAG_HARDIRQ and TRACE_FLAG_SOFTIRQ
 * of common_flags.
 */
#define FLAGS_OFFSET 2
#define IN_INTERRUPT 0x18

/* A thread that has ended meanwhile has the name that it had at an earlier waking. */
static void name_waker(struct sf_perf *perf, const struct sf_perf_record *record, char ret[SF_TASK_NAME])
{
	const struct sf_thread *watched = sf_watch_find(&perf->base.watch, record->tid);
	struct sf_perf_waker *waker = &perf->sleeps.wakers[(uint32_t)record->tid % SF_PERF_WAKERS];

	if (waker->tid != record->tid)
		*waker = (struct sf_perf_waker){ .tid = record->tid, .name = "an ended thread" };
	if (watched)
		memcpy(waker->name, watched->name, sizeof(watched->name));
	else
		sf_task_name(record->pid, record->tid, waker->name);
	memcpy(ret, waker->name, sizeof(waker->name));
}

static void note_waker(struct sf_perf *perf, struct sf_sleep *sleep, const struct sf_perf_record *record)
{
	sleep->has_waker = true;
	sleep->waker = record->raw[FLAGS_OFFSET] & IN_INTERRUPT ? 0 : record->tid;
	sleep->waker_name[0] = 0;
	if (sleep->waker > 0)
		name_waker(perf, record, sleep->waker_name);
}

void sf_perf_sleeps_waking(struct sf_perf *perf, const struct sf_perf_record *record)
{
	struct sf_perf_sleeps *sleeps = &perf->sleeps;
	struct sf_thread *thread;
	uint16_t tracepoint;
	int32_t tid;

	if (record->type == PERF_RECORD_LOST)
		sleeps->n_lost_wakings += record->n_lost;
	if (record->type != PERF_RECORD_SAMPLE || record->raw_size < (uint32_t)sleeps->woken_offset + sizeof(tid))
		return;
	sleeps->n_wakings++;
	sleeps->n_wakings_ever++;
	memcpy(&tracepoint, record->raw, sizeof(tracepoint));
	memcpy(&tid, record->raw + sleeps->woken_offset, sizeof(tid));
	thread = sf_watch_find(&perf->base.watch, tid);
	/* It may be woken while the kernel still copies its stack. */
	if (!thread || !thread->sleep.left_ns || thread->sleep.woken_ns || record->time_ns < thread->sleep.left_ns)
		return;
	if (tracepoint == sleeps->waking)
		note_waker(perf, &thread->sleep, record);
	else
		thread->sleep.woken_ns = record->time_ns;
}

/* --- the end of a batch --- */

/* As far as is known at the end of a batch. */
static uint64_t end_of(const struct sf_perf *perf, const struct sf_sleep *sleep)
{
	return sleep->woken_ns ? sleep->woken_ns : perf->sleeps.began_ns;
}

static bool is_long(const struct sf_perf *perf, const struct sf_thread *thread)
{
	return end_of(perf, &thread->sleep) >= thread->sleep.start_ns + perf->sleeps.min_ns;
}

/*
 * The thread sleeps on. Its further time is added by looks. False: the sleep is too short for a sample as yet, of its
 * own or for its part of the limit.
 */
static bool send_open(struct sf_perf *perf, struct sf_thread *thread, uint64_t now_ns)
{
	if (!is_long(perf, thread) || !sf_perf_sleep_send_open(perf, thread, end_of(perf, &thread->sleep), now_ns))
		return false;
	thread->sleeps.are_recorded = thread->sleep.has_sample;
	thread->asleep_due_ns = now_ns + perf->base.blocked_period_ns; /* the walk has shown by then whether the copy was too short */
	return true;
}

/* Its stack was copied, and the record that it leaves its CPU is in the next batch. */
static bool is_leaving(const struct sf_thread *thread)
{
	return thread->sleep.left_ns && !thread->sleep.start_ns;
}

/* False: it does not sleep any more, or has its sample. */
static bool is_waiting(const struct sf_thread *thread)
{
	return thread->sleep.start_ns && !thread->sleep.has_sample;
}

/* Whether its record is still of use after this batch: the sleep may have a sample in a later one. */
static bool is_to_keep(struct sf_perf *perf, struct sf_thread *thread, uint64_t now_ns)
{
	return is_leaving(thread) || (is_waiting(thread) && !send_open(perf, thread, now_ns));
}

/* The rings' room is the kernel's again after the batch. */
static void keep(struct sf_perf_sleeps *sleeps, struct sf_thread *thread)
{
	const struct perf_event_header *header =
		sf_perf_ring_again(&sleeps->switches.rings[thread->sleep.ring], thread->sleep.place);

	const struct sf_perf_kept_sleep kept = { .tid = thread->task.tid, .n_bytes = header ? header->size : 0 };

	if (!header || sleeps->n_kept_bytes + kept.n_bytes > MAX_KEPT_BYTES || !sf_vec_push(&sleeps->kept, kept)) {
		thread->sleeps.are_recorded = false;
		return;
	}
	sleeps->n_kept_bytes += kept.n_bytes;
	thread->sleep.record = malloc(kept.n_bytes);
	if (thread->sleep.record)
		memcpy(thread->sleep.record, header, kept.n_bytes);
}

static void end_kept(struct sf_perf *perf, uint64_t now_ns)
{
	struct sf_perf_sleeps *sleeps = &perf->sleeps;
	size_t n_left = 0;

	for (size_t i = 0; i < sleeps->kept.n; i++) {
		const struct sf_perf_kept_sleep kept = sleeps->kept.items[i];
		struct sf_thread *thread = sf_watch_find(&perf->base.watch, kept.tid);

		if (thread && thread->sleep.record && is_to_keep(perf, thread, now_ns))
			sleeps->kept.items[n_left++] = kept;
		else
			sleeps->n_kept_bytes -= kept.n_bytes;
	}
	sleeps->kept.n = n_left;
}

/* How deep the stacks of full copies are, by the mappings: a copy may go on in what is mapped behind the stack. */
static uint32_t depth_of_full(const struct sf_perf_full *full)
{
	return full->n ? sf_perf_depth_at(full->pid, full->sps, full->n) : 0;
}

/*
 * Whether stacks go on behind full copies of this batch. A walk shows that, too, but later: at the start of a program the
 * tables of its files are made before.
 */
static bool are_deeper(struct sf_perf_sleeps *sleeps)
{
	const struct sf_perf_full *full = &sleeps->full;

	if (!full->n || sleeps->n_full_looks >= MAX_FULL_LOOKS)
		return false;
	sleeps->n_full_looks++;
	return depth_of_full(full) > sleeps->switches.stack_bytes;
}

/*
 * Where a copy of the present size is too short, later ones are longer, up to the kernel's limit. Events with longer
 * copies that cannot be opened are not tried again.
 */
static void learn_size(struct sf_perf *perf)
{
	struct sf_perf_sleeps *sleeps = &perf->sleeps;
	const uint32_t bytes = sleeps->switches.stack_bytes;

	if (sleeps->too_short == bytes || sf_perf_stack_is_longest(bytes) ||
	    (sf_relay_only_cut(perf->base.relay) < bytes && !are_deeper(sleeps)))
		return;
	sleeps->too_short = bytes;
	sleeps->stack_wanted = 4 * bytes;
}

/*
 * While a command starts, its loader sleeps deep. Where its threads do not do so later, copies have their usual size again: then
 * the rings have room for more of them.
 */
static void learn_later_size(struct sf_perf_sleeps *sleeps)
{
	const uint64_t age_ns = sleeps->began_ns - sleeps->attached_ns;

	if (!sleeps->later_bytes || age_ns < LOADS_NS)
		return;
	if (depth_of_full(&sleeps->full) > sleeps->later_bytes || sleeps->switches.stack_bytes != SF_PERF_STACK_LAUNCHED) {
		sleeps->later_bytes = 0;
	} else if (age_ns >= STARTS_NS) {
		sleeps->stack_wanted = sleeps->later_bytes;
		sleeps->later_bytes = 0;
	}
}

void sf_perf_sleeps_end(struct sf_perf *perf, uint64_t now_ns)
{
	struct sf_perf_sleeps *sleeps = &perf->sleeps;

	if (!sleeps->on)
		return;
	if (sleeps->lost_some) {
		sf_perf_sleeps_forget(perf);
		perf->base.watch.switches.from_ns = sf_now_ns();
	}
	sleeps->lost_some = false;
	end_kept(perf, now_ns);
	for (size_t i = 0; i < sleeps->noted.n; i++) {
		struct sf_thread *thread = sleeps->noted.items[i];

		if (!thread->sleep.record && thread->sleep.batch == sleeps->n_batch && is_to_keep(perf, thread, now_ns))
			keep(sleeps, thread);
	}
	sleeps->noted.n = 0;
	learn_size(perf);
	learn_later_size(sleeps);
	sf_perf_events_end(&sleeps->switches);
	sf_perf_events_end(&sleeps->wakings);
}

uint64_t sf_perf_sleeps_begin(struct sf_perf_sleeps *sleeps, uint64_t began_ns)
{
	if (!sleeps->on)
		return 0;
	sleeps->n_batch++;
	sleeps->full.n = 0;
	sleeps->began_ns = began_ns;
	return sf_perf_events_begin(&sleeps->switches, began_ns) + sf_perf_events_begin(&sleeps->wakings, began_ns);
}

/* --- looks --- */

/* The sleep goes on, and the kernel's copy of its stack was too short: a look can read all of it. */
static bool look_instead(struct sf_thread *thread)
{
	if (!atomic_load_explicit(&thread->needs.only_cut, memory_order_relaxed))
		return false;
	sf_perf_sleep_forget_cut(thread);
	sf_perf_sleeps_forget_thread(thread);
	return true;
}

/* Until the batch's begin, since all records until then have been read: a thread that was woken waits for a CPU. */
bool sf_perf_sleeps_look(struct sf_perf *perf, struct sf_thread *thread, uint64_t now_ns)
{
	if (!thread->sleeps.are_recorded)
		return false;
	thread->asleep_due_ns = now_ns + EXTEND_NS;
	if (!thread->sleep.has_sample || thread->sleep.woken_ns)
		return true;
	sf_perf_sleep_extend(perf, thread, perf->sleeps.began_ns, now_ns);
	return !look_instead(thread);
}

/* The time before that is in the look's sample, also where its records are not read yet. */
void sf_perf_sleeps_looked(struct sf_perf *perf, struct sf_thread *thread)
{
	if (!perf->sleeps.on || !thread->sampled || thread->sleep.has_sample)
		return;
	sf_perf_sleep_forget(thread);
	thread->sleeps.from_ns = thread->sleep.start_ns = thread->sleep.left_ns = sf_now_ns();
	thread->sleep.before_ns = thread->sleeps.sampled_ns;
	thread->sleep.has_sample = true;
}
