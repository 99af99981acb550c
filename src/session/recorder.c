/* SPDX-License-Identifier: Apache-2.0 */
/* The recorder: receives stills and events from an engine and writes them to a recording. */
#include "session/recorder.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/output.h"
#include "os/process.h"
#include "os/syscalls.h"
#include "os/task.h"

#define FLUSH_NS 500000000
#define OPEN_NS 10000000000 /* a sleep whose end is not told is written after so long, and its further time as a sample of its own */

bool sf_recorder_init(struct sf_recorder *recorder, struct sf_recording *recording, uint32_t max_depth,
		    struct sf_error *err)
{
	*recorder = (struct sf_recorder){ .recording = recording };
	if (!sf_walker_init(&recorder->walker, max_depth, err))
		return false;
	if (sf_image_numbers_init(&recorder->image_numbers) && sf_frame_numbers_init(&recorder->frame_numbers))
		return true;
	sf_recorder_deinit(recorder);
	return sf_fail_memory(err);
}

void sf_recorder_deinit(struct sf_recorder *recorder)
{
	for (size_t i = 0; i < recorder->threads.n; i++)
		sf_recorded_thread_deinit(&recorder->threads.items[i]);
	sf_vec_deinit(&recorder->threads);
	sf_vec_deinit(&recorder->open);
	sf_image_numbers_deinit(&recorder->image_numbers);
	sf_frame_numbers_deinit(&recorder->frame_numbers);
	sf_walker_deinit(&recorder->walker);
}

static struct sf_recorded_thread *find_thread(struct sf_recorder *recorder, uint32_t serial)
{
	return serial && serial <= recorder->threads.n ? &recorder->threads.items[serial - 1] : NULL;
}

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

static void forget_suffix(struct sf_recorder *recorder, struct sf_recorded_thread *thread)
{
	recorder->n_suffix_frames -= thread->suffix.capacity;
	sf_stack_suffix_deinit(&thread->suffix);
}

/* A thread of the kernel has brackets, as elsewhere. */
static void name_process(int32_t pid, char *ret, size_t size)
{
	char name[64];

	sf_process_name(pid, name, sizeof(name));
	snprintf(ret, size, sf_process_is_kernel(pid) ? "[%s]" : "%s", name);
}

static bool on_process(void *arg, int32_t pid, int32_t parent, struct sf_error *err)
{
	struct sf_recorder *recorder = arg;
	char name[80], command[1024];

	if (!sf_image_numbers_forget(&recorder->image_numbers, pid))
		return sf_fail_memory(err);
	if (recorder->offline) /* process_name() says the rest */
		return true;
	name_process(pid, name, sizeof(name));
	sf_process_command(pid, command, sizeof(command));
	if (!sf_walker_begin(&recorder->walker, pid, err))
		return false;
	/* At once: it may not live long. Where it has ended already, its stills have no map. */
	if ((!sf_walker_prepare(&recorder->walker, pid, NULL) || !sf_walker_has_code(&recorder->walker, pid)) &&
	    !sf_walker_fork(&recorder->walker, pid, parent, err))
		return false;
	return sf_recording_process(recorder->recording, pid, parent, name, command,
				    recorder->flushed_ns, err);
}

static bool on_process_end(void *arg, int32_t pid, struct sf_error *err)
{
	struct sf_recorder *recorder = arg;

	(void)err;
	sf_walker_end(&recorder->walker, pid);
	return true;
}

static bool on_mapping(void *arg, int32_t pid, const struct sf_mapping *mapping, struct sf_error *err)
{
	struct sf_recorder *recorder = arg;

	return sf_walker_tell(&recorder->walker, pid, mapping, err);
}

/* The process's own name and command line replace those from /proc. If both are empty, they do so only offline. */
static bool on_process_name(void *arg, int32_t pid, int32_t parent, const char *name,
			    const char *command_line, struct sf_error *err)
{
	struct sf_recorder *recorder = arg;

	char present[64];

	if (!*name && !*command_line && !recorder->offline)
		return true;
	/* A name alone is for a process that ended before its command line was read. */
	sf_process_name(pid, present, sizeof(present));
	if (!*command_line && !recorder->offline && *present)
		return true;
	return sf_recording_process(recorder->recording, pid, parent, name, command_line,
				    recorder->flushed_ns, err);
}

static bool on_thread(void *arg, uint32_t serial, int32_t pid, int32_t tid, const char *name,
		      uint64_t time_ns, struct sf_error *err)
{
	struct sf_recorder *recorder = arg;
	struct sf_recorded_thread *thread;

	while (recorder->threads.n < serial) {
		if (!sf_vec_push(&recorder->threads, (struct sf_recorded_thread){ 0 }))
			return sf_fail_memory(err);
	}
	thread = find_thread(recorder, serial);
	thread->serial = serial;
	thread->pid = pid;
	thread->tid = tid;
	if (thread->number && thread->runtime_named)
		return true; /* the system's name is this one, cut, or will be asked for again */
	if (thread->number)
		return sf_recording_thread_name(recorder->recording, thread->number, name, err);
	return sf_recording_thread(recorder->recording, pid, tid, name, time_ns, &thread->number,
				   err);
}

static bool flush_all(struct sf_recorder *recorder, uint64_t now_ns, struct sf_error *err)
{
	size_t n_left = 0;

	recorder->flushed_ns = now_ns;
	for (size_t i = 0; i < recorder->open.n; i++) {
		const uint32_t serial = recorder->open.items[i];
		struct sf_recorded_thread *thread = find_thread(recorder, serial);

		if (thread->is_open && thread->last.ticks && now_ns < thread->opened_ns + OPEN_NS)
			recorder->open.items[n_left++] = serial;
		else if (!sf_recorded_thread_flush(thread, recorder->recording, err))
			return false;
	}
	recorder->open.n = n_left;
	return true;
}

static bool on_thread_end(void *arg, uint32_t serial, uint64_t time_ns, uint64_t cpu_ns,
			  struct sf_error *err)
{
	struct sf_recorder *recorder = arg;
	struct sf_recorded_thread *thread = find_thread(recorder, serial);

	if (!thread || !thread->number)
		return true;
	if (!sf_recorded_thread_flush(thread, recorder->recording, err))
		return false;
	forget_suffix(recorder, thread);
	sf_recorded_thread_deinit(thread);
	return sf_recording_thread_end(recorder->recording, thread->number, time_ns, cpu_ns, err);
}

/* The recording learns of an image before the first frame that is in it. */
static bool tell_modules(struct sf_recorder *recorder, struct sf_error *err)
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
static bool on_woken(void *arg, uint32_t serial, int32_t waker, const char *waker_name, struct sf_error *err)
{
	struct sf_recorder *recorder = arg;
	struct sf_recorded_thread *thread = find_thread(recorder, serial);
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

/*
 * Keeps the walker's trace as a sample of `still`, of which only what is said of the thread is
 * used.
 */
static bool keep(struct sf_recorder *recorder, struct sf_recorded_thread *thread,
		 const struct sf_still *still, const struct sf_weight *weight,
		 uint32_t label_number, struct sf_error *err)
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
		.label = label_number,
	};

	if (!sf_recorded_thread_flush(thread, recorder->recording, err) || !tell_modules(recorder, err) ||
	    !sf_recording_stack(recorder->recording, trace,
				   sf_wait_label(still, label, sizeof(label)), thread->suffix.n_same,
				   thread->suffix.stacks, &sample.stack, err) ||
	    !(still->flags & SF_STILL_OPEN ? open_sleep(recorder, thread, still, &sample, err)
					   : sf_recording_sample(recorder->recording, &sample, err)))
		return false;
	if (!(still->flags & SF_STILL_OPEN))
		sf_recorded_thread_sampled(thread, &sample);
	if (recorder->n_suffix_frames > MAX_OUTER_FRAMES)
		forget_suffix(recorder, thread);
	return true;
}

/* `thread`: its number in the recording, or 0. Always true. */
static bool lose(struct sf_recorder *recorder, uint32_t thread, enum sf_loss cause, const struct sf_weight *weight)
{
	const struct sf_lost lost = { .ticks = weight->ticks, .cpu_ns = weight->cpu_ns, .wall_ns = weight->wall_ns, .amount = weight->amount };

	sf_recording_loss(recorder->recording, thread, cause, &lost);
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

static bool on_note(void *arg, int32_t pid, const char *text, struct sf_error *err)
{
	struct sf_recorder *recorder = arg;
	size_t used = strlen(recorder->notes);
	char line[sizeof(recorder->notes)];

	snprintf(line, sizeof(line), "%s", text);
	sf_sanitize(line);
	if (used + strlen(line) + 2 <= sizeof(line) && !strstr(recorder->notes, line))
		snprintf(recorder->notes + used, sizeof(line) - used, "%s\n", line);
	return sf_recording_note(recorder->recording, pid, text, err);
}

static bool on_measure(void *arg, const struct sf_measure *measure, struct sf_error *err)
{
	struct sf_recorder *recorder = arg;

	if (!measure->is_counted)
		return sf_recording_measure(recorder->recording, measure->name, measure->unit, err);
	sf_recording_counted(recorder->recording, measure->counted);
	return true;
}

/* Adds the message about a process's runtimes to the recording, once. */
static bool tell_news(struct sf_recorder *recorder, int32_t pid, struct sf_error *err)
{
	const char *news = sf_walker_news(&recorder->walker, pid);

	return !news || on_note(recorder, pid, news, err);
}

/* Of the frames that were on the thread's stack at its last sample nothing needs to be found out. */
static bool keep_walked(struct sf_recorder *recorder, struct sf_recorded_thread *thread,
			const struct sf_still *still, const struct sf_weight *weight,
			struct sf_error *err)
{
	const struct sf_trace *trace = &recorder->walker.trace;
	struct sf_stack_suffix *suffix = &thread->suffix;

	if (!match_suffix(recorder, thread))
		return sf_fail_memory(err);
	return sf_process_runtimes_describe(sf_walker_runtimes(&recorder->walker, still->pid), recorder->recording,
					    trace->frames, trace->n_frames - suffix->n_same, err) &&
	       keep(recorder, thread, still, weight, 0, err);
}

static struct sf_verdict on_sample(void *arg, uint32_t serial, struct sf_still *still,
				   const struct sf_weight *weight, uint64_t hold_ns, bool last,
				   struct sf_error *err)
{
	struct sf_recorder *recorder = arg;
	struct sf_recorded_thread *thread = find_thread(recorder, serial);
	struct sf_verdict verdict = { .end = SF_END_EMPTY };

	if (!thread || !thread->number)
		return verdict;
	if (hold_ns)
		sf_recording_hold(recorder->recording, hold_ns);
	verdict.end = sf_walker_walk(&recorder->walker, still);
	if (!tell_news(recorder, still->pid, err)) {
		verdict.failed = true;
		return verdict;
	}
	verdict.stack_used = stack_used(still, &recorder->walker.trace);
	if (verdict.end != SF_END_COPY || last)
		verdict.failed = !sf_recorded_thread_name(thread, &recorder->walker, recorder->recording,
						      still->time_ns, err) ||
				 !keep_walked(recorder, thread, still, weight, err);
	/* Native frames are missing: next time, with all registers. */
	if (recorder->walker.lacks_registers)
		verdict.end = SF_END_REGISTER;
	return verdict;
}

/* Tables are made at once: an agent in a process waits for them to appear in the cache. */
static bool on_image(void *arg, int32_t pid, const struct sf_image_number *image,
		     struct sf_error *err)
{
	struct sf_recorder *recorder = arg;
	const struct sf_image_seen seen = {
		.path = image->path,
		.inode = image->inode,
		.device = image->device,
		.build_id = image->build_id,
		.build_id_size = image->build_id_size,
	};
	struct sf_image *known;
	bool has_room;

	if (!sf_image_numbers_take(&recorder->image_numbers, image, &has_room))
		return sf_fail_memory(err);
	if (!has_room)
		return on_note(recorder, pid, "code of more than 8,192 different files ran: of later ones only "
			       "addresses are shown", err);
	known = sf_images_add(recorder->walker.images, recorder->offline ? 0 : pid, &seen);
	if (!known || !sf_image_numbers_add(&recorder->image_numbers, pid, image->number, known->number))
		return sf_fail_memory(err);
	if (!known->note[0])
		snprintf(known->note, sizeof(known->note), "%s", image->note);
	if (!recorder->offline)
		sf_images_load(recorder->walker.images);
	return true;
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

static bool on_trace(void *arg, uint32_t serial, const struct sf_trace *trace,
		     const struct sf_seen *seen, const struct sf_weight *weight,
		     struct sf_error *err)
{
	struct sf_recorder *recorder = arg;
	struct sf_recorded_thread *thread = find_thread(recorder, serial);
	const struct sf_still still = {
		.time_ns = seen->time_ns,
		.flags = seen->flags,
		.state = seen->state,
		.syscall = seen->syscall,
	};
	uint32_t label = 0;

	if (!thread || !thread->number)
		return lose(recorder, 0, SF_LOSS_RING_FULL, weight);
	if (seen->hold_ns)
		sf_recording_hold(recorder->recording, seen->hold_ns);
	if (seen->label_key && !sf_recording_label(recorder->recording, seen->label_key,
						   seen->label_value, &label, err))
		return false;
	take_trace(recorder, thread->pid, trace);
	if (!match_suffix(recorder, thread))
		return sf_fail_memory(err);
	return sf_frame_numbers_take(&recorder->frame_numbers, recorder->recording, thread->pid,
				   recorder->walker.trace.frames,
				   recorder->walker.trace.n_frames - thread->suffix.n_same, err) &&
	       keep(recorder, thread, &still, weight, label, err);
}

static bool on_describe(void *arg, int32_t pid, const struct sf_described_frame *frame,
			struct sf_error *err)
{
	struct sf_recorder *recorder = arg;

	return sf_frame_numbers_tell(&recorder->frame_numbers, recorder->recording, pid, frame->key,
				     frame->functions, frame->n, err);
}

/* A rest of CPU time, or of events, stands where the thread was last on a CPU, wherever it slept since. */
static bool add_rest(struct sf_recorder *recorder, const struct sf_recorded_thread *thread, uint64_t time_ns,
		     const struct sf_weight *weight, struct sf_error *err)
{
	struct sf_recording_sample rest = thread->ran;

	rest.time_ns = time_ns;
	rest.ticks = weight->ticks;
	rest.cpu_ns = weight->cpu_ns;
	rest.wall_ns = weight->wall_ns > weight->cpu_ns ? weight->wall_ns : weight->cpu_ns;
	rest.amount = weight->amount;
	return sf_recording_sample(recorder->recording, &rest, err);
}

static bool on_again(void *arg, uint32_t serial, uint64_t time_ns, const struct sf_weight *weight,
		     struct sf_error *err)
{
	struct sf_recorder *recorder = arg;
	struct sf_recorded_thread *thread = find_thread(recorder, serial);

	if (!thread || !thread->number || !thread->has_last)
		return lose(recorder, 0, SF_LOSS_MOVED, weight);
	/* A thread that goes on sleeping is not walked again, so its name is read here. */
	if (thread->named_later && !sf_recorded_thread_name(thread, &recorder->walker, recorder->recording, time_ns, err))
		return false;
	if ((weight->cpu_ns || weight->amount) && thread->ran.thread)
		return add_rest(recorder, thread, time_ns, weight, err);
	if (!thread->last.ticks && !sf_vec_push(&recorder->open, serial))
		return sf_fail_memory(err);
	sf_recorded_thread_wait(thread, time_ns, weight);
	return true;
}

static bool on_loss(void *arg, uint32_t serial, enum sf_loss cause, const struct sf_weight *weight,
		    struct sf_error *err)
{
	struct sf_recorder *recorder = arg;
	const struct sf_recorded_thread *thread = find_thread(recorder, serial);

	(void)err;
	return lose(recorder, thread ? thread->number : 0, cause, weight);
}

static bool on_idle(void *arg, uint64_t now_ns, struct sf_error *err)
{
	struct sf_recorder *recorder = arg;

	if (now_ns - recorder->flushed_ns > FLUSH_NS && !flush_all(recorder, now_ns, err))
		return false;
	/* A stream's time may pass as fast as its maker likes: samples are written by their number. */
	if (recorder->offline)
		return true;
	if (recorder->early && !sf_early_names_tick(recorder->early, now_ns, err))
		return false;
	return sf_recording_tick(recorder->recording, now_ns, err);
}

struct sf_sink sf_recorder_sink(struct sf_recorder *recorder)
{
	return (struct sf_sink){
		.arg = recorder,
		.process = on_process,
		.process_end = on_process_end,
		.mapping = on_mapping,
		.process_name = on_process_name,
		.thread = on_thread,
		.thread_end = on_thread_end,
		.sample = on_sample,
		.image = on_image,
		.trace = on_trace,
		.describe = on_describe,
		.measure = on_measure,
		.note = on_note,
		.again = on_again,
		.woken = on_woken,
		.loss = on_loss,
		.idle = on_idle,
	};
}
