/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Blocked samples inside the process, and the limit of their cost. Only the sampler's thread calls this. The proof that a thread
 * slept throughout its walk: its CPU clock has the same value before and after. A thread that was on a
 * CPU in between has used CPU time. (The switch count, which is used from outside, proves the same,
 * but takes two files; the clock takes one system call.)
 */
#include "agent/sampler/blocked_sample.h"

#include <string.h>

#include "agent/agent.h"
#include "agent/clocks/clocks.h"
#include "agent/libc/own_proc.h"
#include "agent/sampler/threads.h"
#include "frozen/random.h"
#include "frozen/raw.h"
#include "frozen/signal/handler.h"
#include "frozen/signal/ticks.h"
#include "stream/record.h"

/*
 * A longer sleep is written as an AGAIN record when its unwritten part is an eighth of the sleep, or a
 * second. Otherwise five thousand idle threads would fill the outbox with 5 MB a second. The unwritten
 * part is not lost when the thread runs: it is written then, or belongs to its next blocked sample.
 */
#define AGAIN_SHARE 8
#define AGAIN_NS 1000000000
#define MAX_PUT_OFF 20         /* looks in a thread's life, until its handles are there */
#define MAX_PUT_OFF_FOR_CODE 5 /* until the map has the code where it sleeps */

/*
 * A call that goes on after an interruption does so as restart_syscall, which says nothing to a
 * reader: the number that the code loads does.
 */
static int32_t syscall_of(const struct sf_own_place *place)
{
	uint8_t code[SF_CALL_CODE];
	int32_t number;

	if (place->syscall != SYS_restart_syscall || !sf_handler.config.arch->loaded_syscall ||
	    sf_own_memory_read(&sf_handler.code.memory, code, place->pc - sizeof(code), sizeof(code)) !=
		    sizeof(code))
		return place->syscall;
	number = sf_handler.config.arch->loaded_syscall(code);
	return number >= 0 ? number : place->syscall;
}

static void fill(struct sf_still *still, const struct sf_agent_thread *thread,
		 const struct sf_own_place *place, uint64_t now_ns)
{
	*still = (struct sf_still){
		.arch = sf_handler.config.arch,
		.regs = { .pc = place->pc },
		.map = atomic_load(&sf_handler.code.map),
		.pid = sf_handler.config.pid,
		.tid = thread->tid,
		.flags = SF_STILL_UNHELD,
		.state = sf_own_letter(thread->tid) == 'T' ? SF_STATE_STOPPED : SF_STATE_BLOCKED,
		.syscall = syscall_of(place),
		.time_ns = now_ns,
	};
	sf_reg_set(&still->regs, sf_handler.config.arch->sp, place->sp);
	for (int i = 0; place->syscall >= 0 && i < 6; i++)
		sf_reg_set(&still->regs, still->arch->syscall_args[i], place->args[i]);
	memcpy(still->syscall_args, place->args, sizeof(place->args));
}

static bool put(struct sf_agent *agent, const struct sf_agent_thread *thread)
{
	const struct sf_still *still = &agent->workspace->still;
	uint64_t wall_ns = thread->asleep_ns > 0 ? (uint64_t)thread->asleep_ns : 0;
	struct sf_stream_sample sample = {
		.serial = thread->serial,
		.time_ns = still->time_ns,
		.wall_ns = wall_ns,
		.ticks = sf_ticks(wall_ns, sf_period_ns(agent->options.blocked_rate_mhz)),
		.label = atomic_load(&thread->entry->label),
		.syscall = still->syscall,
		.state = still->state,
		.still_flags = (uint16_t)still->flags,
	};

	return sf_handler_put(&sf_handler, agent->workspace, &sample);
}

/* The service thread has not looked for the thread in one of the runtimes yet. */
static bool waits_for_handles(const struct sf_code_map *map, const struct sf_thread_entry *entry)
{
	for (size_t i = 0; i < map->n_runtimes; i++) {
		if (map->runtimes[i]->ops->is_thread &&
		    !atomic_load(&entry->handles[map->runtimes[i]->slot]))
			return true;
	}
	return false;
}

/* A sum of them, which differs when one does. */
static uint64_t all_handles(const struct sf_thread_entry *entry)
{
	uint64_t all = 0;

	for (unsigned i = 0; i < SF_MAX_RUNTIMES; i++)
		all = all * 31 + atomic_load(&entry->handles[i]);
	return all;
}

/*
 * Whether the walk may be another one with a newer code map or with handles. That it is whole says little: frame pointers
 * lead through the code of a virtual machine that is not attached to yet.
 */
static bool may_change(const struct sf_trace *trace)
{
	return trace->end != SF_END_ROOT || sf_trace_may_be_stale(trace) || sf_trace_has_code_of_no_file(trace);
}

/* How many looks a walk that may change is put off: what it lacks will be there in a moment. */
static uint32_t most_put_off(const struct sf_workspace *workspace, const struct sf_agent_thread *thread)
{
	if (!may_change(&workspace->trace) || !workspace->still.map)
		return 0;
	if (waits_for_handles(workspace->still.map, thread->entry))
		return MAX_PUT_OFF;
	return workspace->trace.end == SF_END_NO_CODE ? MAX_PUT_OFF_FOR_CODE : 0;
}

/* The thread's next sample stands for its sleep until then, too. */
static bool is_to_be_put_off(const struct sf_agent *agent, struct sf_agent_thread *thread)
{
	const uint32_t most = most_put_off(agent->workspace, thread);

	if (most && sf_trace_may_be_stale(&agent->workspace->trace))
		sf_handler_note_stale_map(&sf_handler);
	return most && ++thread->n_put_off <= most;
}

static bool is_within(uint64_t address, const void *start, size_t size)
{
	return address - (uint64_t)(uintptr_t)start < size;
}

/* Whether the thread waits in our handler, on a slot or on a field of its entry. */
static bool waits_for_us(const struct sf_own_place *place)
{
	return place->syscall == SYS_futex &&
	       (is_within(place->args[0], sf_handler.link.slots,
			  sf_handler.link.n_slots * sizeof(*sf_handler.link.slots)) ||
		is_within(place->args[0], sf_handler.link.entries, SF_THREAD_TABLE_SIZE * sizeof(*sf_handler.link.entries)));
}

bool sf_blocked_sample_take(struct sf_agent *agent, struct sf_agent_thread *thread, uint64_t now_ns)
{
	struct sf_own_place place;
	uint64_t cpu_ns;

	if (!sf_own_place(thread->tid, &place) || place.awake || !place.pc || waits_for_us(&place))
		return false;
	/* Before: AGAIN extends the last sample of the thread. */
	sf_handler_settle_kept(&sf_handler, agent->workspace, thread->serial);
	fill(&agent->workspace->still, thread, &place, now_ns);
	thread->asleep_handles = all_handles(thread->entry);
	sf_handler_walk(&sf_handler.code, agent->workspace, &agent->workspace->still, thread->entry);
	if (!sf_agent_thread_cpu(thread->tid, &cpu_ns) || cpu_ns != thread->cpu_ns)
		return false;
	if (is_to_be_put_off(agent, thread))
		return false;
	if (!put(agent, thread))
		return true;
	if (thread->asleep_ns > 0)
		thread->asleep_ns = 0;
	thread->sampled_asleep = true;
	thread->may_change_asleep = may_change(&agent->workspace->trace);
	thread->asleep_map = agent->workspace->still.map;
	thread->sleeps_since_ns = now_ns;
	return true;
}

/* Whether the thread has slept long enough since its last record to justify another one. */
static bool is_worth_a_sample(const struct sf_agent_thread *thread, uint64_t now_ns)
{
	uint64_t sleep_ns = now_ns - thread->sleeps_since_ns;
	uint64_t unsent_ns = thread->asleep_ns > 0 ? (uint64_t)thread->asleep_ns : 0;

	return unsent_ns >= AGAIN_NS || unsent_ns >= sleep_ns / AGAIN_SHARE;
}

void sf_blocked_sample_again(const struct sf_agent_options *options, struct sf_agent_thread *thread,
		     uint64_t now_ns)
{
	struct sf_stream_again again = {
		.serial = thread->serial,
		.time_ns = now_ns,
		.wall_ns = thread->asleep_ns > 0 ? (uint64_t)thread->asleep_ns : 0,
	};

	/* A sample that came in between would be extended in the place of the one asleep. */
	if (!thread->sampled_asleep || !again.wall_ns ||
	    atomic_load(&thread->entry->n_samples) != thread->n_samples_before)
		return;
	again.ticks = sf_ticks(again.wall_ns, sf_period_ns(options->blocked_rate_mhz));
	if (sf_output_put_record(&sf_handler.output, SF_STREAM_AGAIN, &again, sizeof(again), NULL, 0))
		thread->asleep_ns = 0;
}

bool sf_blocked_sample_is_out_of_date(const struct sf_agent_thread *thread)
{
	return thread->may_change_asleep &&
	       (thread->asleep_map != atomic_load(&sf_handler.code.map) ||
		thread->asleep_handles != all_handles(thread->entry));
}

void sf_blocked_sample_on(const struct sf_agent_options *options, struct sf_agent_thread *thread,
		  uint64_t now_ns)
{
	if (is_worth_a_sample(thread, now_ns))
		sf_blocked_sample_again(options, thread, now_ns);
}

/* --- the limit of their cost --- */

#define SHARE 100            /* one of so many parts of the time of all CPUs */
#define ALL (UINT64_C(1) << 16)

void sf_sleep_budget_begin(struct sf_sleep_budget *budget, unsigned n_cpus, uint64_t now_ns)
{
	*budget = (struct sf_sleep_budget){ .n_cpus = n_cpus, .random = now_ns | 1, .part = ALL, .began_ns = now_ns };
}

static uint64_t part_for(const struct sf_sleep_budget *budget, uint64_t passed_ns)
{
	const uint64_t wanted_ns = budget->n_due * budget->mean_ns, allowed_ns = passed_ns * budget->n_cpus / SHARE;

	return wanted_ns <= allowed_ns ? ALL : allowed_ns * ALL / wanted_ns;
}

void sf_sleep_budget_round(struct sf_sleep_budget *budget, uint64_t now_ns)
{
	if (budget->n_taken)
		budget->mean_ns = budget->taken_ns / budget->n_taken;
	budget->part = part_for(budget, now_ns - budget->began_ns);
	budget->began_ns = now_ns;
	budget->n_due = budget->n_taken = budget->taken_ns = 0;
}

bool sf_sleep_budget_has_room(struct sf_sleep_budget *budget, bool first)
{
	budget->n_due++;
	return first || sf_random(&budget->random) % ALL < budget->part;
}

void sf_sleep_budget_taken(struct sf_sleep_budget *budget, uint64_t cost_ns)
{
	budget->n_taken++;
	budget->taken_ns += cost_ns;
}
