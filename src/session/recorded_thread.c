/* SPDX-License-Identifier: Apache-2.0 */
/* Keeps what is known of a thread from one sample to the next: its stack, the memory of its tail, and the ticks of its sleep. */
#include "session/recorded_thread.h"

#include <stdlib.h>

#define MAX_FRAMES 1024u                  /* of a tail */
#define MAX_BYTES 65536u
#define MAX_TOTAL ((uint64_t)16 << 20)    /* bytes of all tails */
#define RENAME_NS 1000000000              /* a name is read again after so long; */
#define LATER_NS 20000000                 /* one that could not be read yet, after so long */

void sf_stack_suffix_deinit(struct sf_stack_suffix *suffix)
{
	free(suffix->frames);
	free(suffix->stacks);
	*suffix = (struct sf_stack_suffix){ 0 };
}

static bool reserve(struct sf_stack_suffix *suffix, uint32_t n)
{
	struct sf_frame *frames;
	uint32_t *stacks;

	if (n <= suffix->capacity)
		return true;
	frames = realloc(suffix->frames, n * sizeof(*frames));
	if (frames)
		suffix->frames = frames;
	stacks = realloc(suffix->stacks, n * sizeof(*stacks));
	if (stacks)
		suffix->stacks = stacks;
	if (!frames || !stacks)
		return false;
	suffix->capacity = n;
	return true;
}

/* The id says whether a token was used again for other code (frozen/trace.h). */
static bool is_same(const struct sf_frame *a, const struct sf_frame *b)
{
	return a->pc == b->pc && a->sp == b->sp && a->token == b->token && a->id == b->id &&
	       a->bci == b->bci && a->kind == b->kind && a->via == b->via && a->flags == b->flags &&
	       a->image == b->image && a->address == b->address;
}

bool sf_stack_suffix_match(struct sf_stack_suffix *suffix, const struct sf_trace *trace)
{
	const uint32_t n = trace->end == SF_END_ROOT ? trace->n_frames : 0;

	suffix->n_same = 0;
	if (!reserve(suffix, trace->n_frames))
		return false;
	while (suffix->n_same < n && suffix->n_same < suffix->n &&
	       is_same(&suffix->frames[suffix->n_same], &trace->frames[n - 1 - suffix->n_same]))
		suffix->n_same++;
	suffix->n = n;
	for (uint32_t i = suffix->n_same; i < n; i++)
		suffix->frames[i] = trace->frames[n - 1 - i];
	return true;
}

static uint64_t memory_of(const struct sf_tail *tail)
{
	return (uint64_t)tail->capacity * (sizeof(*tail->frames) + sizeof(*tail->regs)) + tail->size;
}

void sf_tail_room_free(struct sf_tail_room *room, struct sf_tail *tail)
{
	room->used -= memory_of(tail);
	free(tail->frames);
	free(tail->regs);
	free(tail->bytes);
	*tail = (struct sf_tail){ 0 };
}

/* Half as much again: stacks that grow do so by and by. */
static uint32_t larger(uint64_t wanted, uint32_t now, uint32_t most)
{
	const uint64_t size = wanted > now ? wanted + wanted / 2 : now;

	return size < most ? (uint32_t)size : most;
}

void sf_tail_room_fit(struct sf_tail_room *room, struct sf_tail *tail)
{
	struct sf_tail made = {
		.capacity = larger(tail->n_wanted, tail->capacity, MAX_FRAMES),
		.size = larger(tail->size_wanted, tail->size, MAX_BYTES),
	};

	if ((made.capacity == tail->capacity && made.size == tail->size) ||
	    room->used - memory_of(tail) + memory_of(&made) > MAX_TOTAL)
		return;
	made.frames = malloc(made.capacity * sizeof(*made.frames));
	made.regs = malloc(made.capacity * sizeof(*made.regs));
	made.bytes = malloc(made.size);
	room->used += memory_of(&made);
	if (!made.frames || !made.regs || !made.bytes) {
		sf_tail_room_free(room, &made);
		return;
	}
	sf_tail_room_free(room, tail);
	*tail = made;
}

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
