/* SPDX-License-Identifier: Apache-2.0 */
/* Adds up the ticks of a sleeping thread, and writes them as one sample. */
#include "session/recorded_thread.h"

#define RENAME_NS 1000000000
#define LATER_NS 20000000

void sf_recorded_thread_deinit(struct sf_recorded_thread *thread)
{
	sf_stack_suffix_deinit(&thread->suffix);
}

static void wait_for_nothing(struct sf_recorded_thread *thread)
{
	thread->last.ticks = 0;
	thread->last.cpu_ns = thread->last.wall_ns = thread->last.amount = 0;
}

void sf_recorded_thread_sampled(struct sf_recorded_thread *thread, const struct sf_recording_sample *sample)
{
	thread->last = *sample;
	thread->has_last = true;
	thread->is_open = false;
	if (sample->state == SF_STATE_RUNNING)
		thread->ran = *sample;
	wait_for_nothing(thread);
}

void sf_recorded_thread_open(struct sf_recorded_thread *thread, const struct sf_recording_sample *sample)
{
	thread->last = thread->slept = *sample;
	thread->has_last = thread->is_open = true;
	thread->opened_ns = sample->time_ns;
}

void sf_recorded_thread_wait(struct sf_recorded_thread *thread, uint64_t time_ns,
			 const struct sf_weight *weight)
{
	thread->last.time_ns = time_ns;
	thread->last.ticks += weight->ticks;
	thread->last.cpu_ns += weight->cpu_ns;
	thread->last.wall_ns += weight->wall_ns;
	thread->last.amount += weight->amount;
}

bool sf_recorded_thread_flush(struct sf_recorded_thread *thread, struct sf_recording *recording,
			  struct sf_error *err)
{
	if (!thread->last.ticks)
		return true;
	if (!sf_recording_sample(recording, &thread->last, err))
		return false;
	wait_for_nothing(thread);
	return true;
}

/* The system keeps 15 bytes of a thread's name. Names change, and can sometimes not be read. */
bool sf_recorded_thread_name(struct sf_recorded_thread *thread, struct sf_walker *walker,
			 struct sf_recording *recording, uint64_t now_ns, struct sf_error *err)
{
	struct sf_process_runtimes *runtimes;
	char name[SF_RUNTIME_NAME];
	enum sf_naming named;

	if (thread->named_ns && now_ns - thread->named_ns < RENAME_NS)
		return true;
	thread->named_ns = now_ns;
	runtimes = sf_walker_runtimes(walker, thread->pid);
	named = runtimes ? sf_process_runtimes_name(runtimes, thread->pid, thread->tid, name) : SF_UNNAMED;
	thread->named_later = named == SF_NAMED_LATER;
	if (thread->named_later)
		thread->named_ns = now_ns - RENAME_NS + LATER_NS;
	if (named != SF_NAMED)
		return true;
	thread->runtime_named = true;
	return sf_recording_thread_name(recording, thread->number, name, err);
}
