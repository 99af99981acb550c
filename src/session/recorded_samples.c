/* SPDX-License-Identifier: Apache-2.0 */
/* The samples of a recording: walks stills, keeps stacks, and adds to the last sample of a thread. */
#include "session/recorder_parts.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "os/syscalls.h"
#include "os/task.h"

#define MAX_OUTER_FRAMES (1u << 20)  /* kept of all threads, some 50 MB */

/*
 * Finds what of the trace stood on the thread's stack at its last sample. A thread that makes an exec
 * lives on; what stood on its stack does not.
 */
static bool match_suffix(struct sf_recorder *recorder, struct sf_recorded_thread *thread)
{
	uint32_t program = sf_image_numbers_program(&recorder->image_numbers, thread->pid);
	uint32_t before = thread->suffix.capacity;

	if (thread->program != program)
		thread->suffix.n = 0;
	thread->program = program;
	if (!sf_stack_suffix_match(&thread->suffix, &recorder->walker.trace))
		return false;
	recorder->n_suffix_frames += thread->suffix.capacity - before;
	return true;
}

void sf_recorder_forget_suffix(struct sf_recorder *recorder, struct sf_recorded_thread *thread)
{
	recorder->n_suffix_frames -= thread->suffix.capacity;
	sf_stack_suffix_deinit(&thread->suffix);
}

/* An image is in the recording before the first frame that is in it. */
static bool add_modules(struct sf_recorder *recorder, struct sf_error *err)
{
	struct sf_images *images = recorder->walker.images;

	for (; recorder->n_modules < sf_images_count(images); recorder->n_modules++) {
		const struct sf_image *image = sf_images_get(images, recorder->n_modules + 1);
		struct sf_recording_module module = {
			.number = image->number,
			.path = image->path,
			.build_id = image->build_id,
			.build_id_size = image->build_id_size,
			.note = image->note,
		};

		if (!sf_recording_module(recorder->recording, &module, err))
			return false;
	}
	return true;
}

#define MAX_WAIT_LABELS 50000 /* in a recording: later ones have none */

/* The label of a sleep: the lock or condition that the thread waited for, and who woke it, as far as these are known. */
static bool label_sleep(struct sf_recorder *recorder, const struct sf_recorded_thread *thread, const char *waker, uint32_t *ret,
			struct sf_error *err)
{
	char text[100] = "";

	if (thread->futex)
		snprintf(text, sizeof(text), "futex 0x%" PRIx64, thread->futex);
	if (*waker)
		snprintf(text + strlen(text), sizeof(text) - strlen(text), "%swoken by %s", *text ? ", " : "", waker);
	if (!*text || recorder->n_labels >= MAX_WAIT_LABELS)
		return true;
	return sf_recording_label(recorder->recording, "wait", text, ret, err) && (recorder->n_labels = *ret);
}

static bool open_sleep(struct sf_recorder *recorder, struct sf_recorded_thread *thread, const struct sf_still *still,
		       struct sf_recording_sample *sample, struct sf_error *err)
{
	char name[64];

	sf_syscall_name(still->syscall, name, sizeof(name));
	thread->futex = strcmp(name, "futex") == 0 ? still->syscall_args[0] : 0;
	if (!label_sleep(recorder, thread, "", &sample->label, err))
		return false;
	sf_recorded_thread_open(thread, sample);
	return sf_vec_push(&recorder->open, thread->serial) || sf_fail_memory(err);
}

/* A row that was written already keeps the label that it has. */
bool sf_recorder_woken(void *arg, uint32_t serial, int32_t waker, const char *waker_name, struct sf_error *err)
{
	struct sf_recorder *recorder = arg;
	struct sf_recorded_thread *thread = sf_recorder_thread(recorder, serial);
	char text[SF_TASK_NAME + 16] = "";

	if (!thread || !thread->number || !thread->is_open)
		return true;
	thread->is_open = false;
	if (waker > 0)
		snprintf(text, sizeof(text), "%s (%d)", waker_name, waker);
	else if (waker == 0)
		snprintf(text, sizeof(text), "an interrupt");
	return !thread->last.ticks || label_sleep(recorder, thread, text, &thread->last.label, err);
}

/* 0: the sample has no such label. */
struct numbers_of_labels {
	uint32_t label, second;
};

static bool number_labels(struct sf_recorder *recorder, const struct sf_seen *seen, struct numbers_of_labels *ret,
			  struct sf_error *err)
{
	return (!seen->label_key ||
		sf_recording_label(recorder->recording, seen->label_key, seen->label_value, &ret->label, err)) &&
	       (!seen->second_key ||
		sf_recording_label(recorder->recording, seen->second_key, seen->second_value, &ret->second, err));
}

static const char *const causes[] = {
#define X(name, word) word,
	SF_CAUSES(X)
#undef X
};

/*
 * "[futex]", "[page fault]", "[stopped]": the leaf that says what a still waits for; NULL if it runs. "[kernel]": the thread stays in the
 * kernel, and no frame of it is known.
 */
static const char *leaf_label(const struct sf_still *still, const struct sf_trace *trace, char *ret, size_t size)
{
	char name[64];

	if (still->state == SF_STATE_STOPPED)
		return "[stopped]";
	if (!trace->n_frames && trace->end == SF_END_ROOT && still->syscall < 0)
		return "[kernel]";
	if (still->state != SF_STATE_BLOCKED || still->syscall == SF_SYSCALL_NONE)
		return NULL;
	sf_syscall_name(still->syscall, name, sizeof(name));
	if (still->cause < sizeof(causes) / sizeof(causes[0]) && *causes[still->cause])
		snprintf(ret, size, "[%s: %s]", name, causes[still->cause]);
	else
		snprintf(ret, size, "[%s]", name);
	return ret;
}

/* Halves are given where the one sample and the other have the time since the last one: a clock's sample has its period. */
static bool write_sample(struct sf_recording *recording, struct sf_recorded_thread *thread, bool since_last,
			 struct sf_recording_sample *sample, struct sf_error *err)
{
	if (sample->state == SF_STATE_RUNNING && sample->cpu_ns) {
		if (since_last)
			sf_recording_give_half(recording, &thread->ran_row, sample);
		thread->ran_row = since_last ? sf_recording_next_row(recording) : (struct sf_recording_row){ 0 };
	}
	return sf_recording_sample(recording, sample, err);
}

/*
 * Keeps the walker's trace as a sample of `still`, of which only what is said of the thread is
 * used.
 */
static bool keep(struct sf_recorder *recorder, struct sf_recorded_thread *thread,
		 const struct sf_still *still, const struct sf_weight *weight,
		 const struct numbers_of_labels *labels, struct sf_error *err)
{
	const struct sf_trace *trace = &recorder->walker.trace;
	char label[80];
	struct sf_recording_sample sample = {
		.time_ns = still->time_ns,
		.thread = thread->number,
		.cpu_ns = weight->cpu_ns,
		.wall_ns = weight->wall_ns,
		.amount = weight->amount,
		.ticks = weight->ticks,
		.state = still->state,
		.end = (uint8_t)trace->end,
		.unheld = (still->flags & (SF_STILL_UNHELD | SF_STILL_OPEN)) != 0,
		.syscall = still->syscall,
		.label = labels->label,
		.second_label = labels->second,
	};

	if (!sf_recorded_thread_flush(thread, recorder->recording, err) || !add_modules(recorder, err) ||
	    !sf_recording_stack(recorder->recording, trace,
				   leaf_label(still, trace, label, sizeof(label)), thread->suffix.n_same,
				   thread->suffix.stacks, &sample.stack, err) ||
	    !(still->flags & SF_STILL_OPEN ? open_sleep(recorder, thread, still, &sample, err)
					   : write_sample(recorder->recording, thread, weight->since_last, &sample, err)))
		return false;
	if (!(still->flags & SF_STILL_OPEN))
		sf_recorded_thread_sampled(thread, &sample);
	if (recorder->n_suffix_frames > MAX_OUTER_FRAMES)
		sf_recorder_forget_suffix(recorder, thread);
	return true;
}

/* How far into a window the address is; 0: in none. */
static uint64_t depth_in(uint64_t start, uint64_t size, uint64_t addr)
{
	return addr - start <= size ? addr - start : 0;
}

/* Bytes of the stack, or of another one that the walk went on in: of which it needed most. */
static uint64_t stack_used(const struct sf_still *still, const struct sf_trace *trace)
{
	const struct sf_reader *memory = &still->memory;
	uint64_t most = 0;

	for (uint32_t i = 0; i < trace->n_frames; i++) {
		const uint64_t sp = trace->frames[i].sp;
		uint64_t used = depth_in(memory->window_start, memory->window_size, sp);

		for (uint32_t j = 0; j < memory->n_others && !used; j++)
			used = depth_in(memory->others[j].start, memory->others[j].size, sp);
		most = used > most ? used : most;
	}
	return most;
}

/*
 * Keeps the walker's trace as a sample of `still`. Of the frames that were on the thread's stack at its last sample nothing
 * needs to be found out.
 */
static bool keep_walked(struct sf_recorder *recorder, struct sf_recorded_thread *thread, const struct sf_still *still,
			const struct sf_weight *weight, struct sf_error *err)
{
	const struct sf_trace *trace = &recorder->walker.trace;
	struct sf_stack_suffix *suffix = &thread->suffix;
	const struct numbers_of_labels none = { 0 };

	if (!match_suffix(recorder, thread))
		return sf_fail_memory(err);
	return sf_process_runtimes_describe(sf_walker_runtimes(&recorder->walker, still->pid), recorder->recording,
					    trace->frames, trace->n_frames - suffix->n_same, err) &&
	       keep(recorder, thread, still, weight, &none, err);
}

/* Adds the message about a process's runtimes to the recording, once. */
static bool note_news(struct sf_recorder *recorder, int32_t pid, struct sf_error *err)
{
	const char *news = sf_walker_news(&recorder->walker, pid);

	return !news || sf_recorder_note(recorder, pid, news, err);
}

struct sf_verdict sf_recorder_sample(void *arg, uint32_t serial, struct sf_still *still, const struct sf_weight *weight,
				     uint64_t hold_ns, bool last, struct sf_error *err)
{
	struct sf_recorder *recorder = arg;
	struct sf_recorded_thread *thread = sf_recorder_thread(recorder, serial);
	struct sf_verdict verdict = { .end = SF_END_EMPTY };

	if (!thread || !thread->number)
		return verdict;
	if (hold_ns)
		sf_recording_hold(recorder->recording, hold_ns);
	verdict.end = sf_walker_walk(&recorder->walker, still, &thread->tail);
	sf_tail_room_fit(&recorder->tails, &thread->tail);
	if (!note_news(recorder, still->pid, err)) {
		verdict.failed = true;
		return verdict;
	}
	verdict.stack_used = stack_used(still, &recorder->walker.trace);
	verdict.lacks_chain = recorder->walker.trace.lacks_chain;
	verdict.below_sp = recorder->walker.trace.below_sp;
	if (verdict.end != SF_END_COPY || last)
		verdict.failed = !sf_recorded_thread_name(thread, &recorder->walker, recorder->recording,
						      still->time_ns, err) ||
				 !keep_walked(recorder, thread, still, weight, err);
	/* Native frames are missing: next time, with all registers. */
	if (recorder->walker.lacks_registers)
		verdict.end = SF_END_REGISTER;
	return verdict;
}

/*
 * Copies a trace to the walker's, with the session's image numbers; what is too deep for it is cut.
 */
static void take_trace(struct sf_recorder *recorder, int32_t pid, const struct sf_trace *from)
{
	struct sf_trace *trace = &recorder->walker.trace;

	trace->n_frames = from->n_frames < trace->capacity ? from->n_frames : trace->capacity;
	trace->end = trace->n_frames < from->n_frames ? SF_END_DEPTH : from->end;
	for (uint32_t i = 0; i < trace->n_frames; i++) {
		struct sf_frame *frame = &trace->frames[i];

		*frame = from->frames[i];
		if (frame->image)
			frame->image = sf_image_numbers_find(&recorder->image_numbers, pid, frame->image);
	}
}

bool sf_recorder_trace(void *arg, uint32_t serial, const struct sf_trace *trace,
		     const struct sf_seen *seen, const struct sf_weight *weight,
		     struct sf_error *err)
{
	struct sf_recorder *recorder = arg;
	struct sf_recorded_thread *thread = sf_recorder_thread(recorder, serial);
	const struct sf_still still = {
		.time_ns = seen->time_ns,
		.flags = seen->flags,
		.state = seen->state,
		.syscall = seen->syscall,
	};
	struct numbers_of_labels labels = { 0 };

	if (!thread || !thread->number)
		return sf_recorder_lose(recorder, 0, SF_LOSS_RING_FULL, weight);
	if (seen->hold_ns)
		sf_recording_hold(recorder->recording, seen->hold_ns);
	if (!number_labels(recorder, seen, &labels, err))
		return false;
	take_trace(recorder, thread->pid, trace);
	if (!match_suffix(recorder, thread))
		return sf_fail_memory(err);
	return sf_frame_numbers_take(&recorder->frame_numbers, recorder->recording, thread->pid,
				   recorder->walker.trace.frames,
				   recorder->walker.trace.n_frames - thread->suffix.n_same, err) &&
	       keep(recorder, thread, &still, weight, &labels, err);
}

/*
 * A rest of CPU time, or of events, stands where the thread was last on a CPU, wherever it slept since. A rest of sleeps
 * stands where it slept last.
 */
static bool add_rest(struct sf_recorder *recorder, const struct sf_recording_sample *last, uint64_t time_ns,
		     const struct sf_weight *weight, struct sf_error *err)
{
	struct sf_recording_sample rest = *last;

	rest.time_ns = time_ns;
	rest.ticks = weight->ticks;
	rest.cpu_ns = weight->cpu_ns;
	rest.wall_ns = weight->wall_ns > weight->cpu_ns ? weight->wall_ns : weight->cpu_ns;
	rest.amount = weight->amount;
	return sf_recording_sample(recorder->recording, &rest, err);
}

bool sf_recorder_again(void *arg, uint32_t serial, uint64_t time_ns, const struct sf_weight *weight,
		     struct sf_error *err)
{
	struct sf_recorder *recorder = arg;
	struct sf_recorded_thread *thread = sf_recorder_thread(recorder, serial);

	if (!thread || !thread->number || !thread->has_last)
		return sf_recorder_lose(recorder, 0, SF_LOSS_MOVED, weight);
	/* A thread that goes on sleeping is not walked again, so its name is read here. */
	if (thread->named_later && !sf_recorded_thread_name(thread, &recorder->walker, recorder->recording, time_ns, err))
		return false;
	if ((weight->cpu_ns || weight->amount) && thread->ran.thread)
		return add_rest(recorder, &thread->ran, time_ns, weight, err);
	if (weight->cpu_ns) /* its samples on a CPU found no room */
		return sf_recorder_lose(recorder, thread->number, SF_LOSS_REST, weight);
	if (thread->last.state == SF_STATE_RUNNING && thread->slept.thread)
		return add_rest(recorder, &thread->slept, time_ns, weight, err);
	if (!thread->last.ticks && !sf_vec_push(&recorder->open, serial))
		return sf_fail_memory(err);
	sf_recorded_thread_wait(thread, time_ns, weight);
	return true;
}
