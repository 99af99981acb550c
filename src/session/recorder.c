/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The recorder: receives what an engine sees of processes, threads and files, and writes it to a recording. Samples are
 * received in recorded_samples.c.
 */
#include "session/recorder_parts.h"

#include <stdio.h>

#include "os/process.h"
#include "runtime/events.h"

#define FLUSH_NS 500000000
#define OPEN_NS 10000000000 /* a sleep whose end is not recorded is written after so long, and its further time as a sample of its own */

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
	for (size_t i = 0; i < recorder->threads.n; i++) {
		sf_tail_room_free(&recorder->tails, &recorder->threads.items[i].tail);
		sf_recorded_thread_deinit(&recorder->threads.items[i]);
	}
	sf_vec_deinit(&recorder->threads);
	sf_vec_deinit(&recorder->open);
	sf_image_numbers_deinit(&recorder->image_numbers);
	sf_frame_numbers_deinit(&recorder->frame_numbers);
	sf_walker_deinit(&recorder->walker);
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
	struct sf_program program = { 0 }; /* stays so where the process has ended */
	char name[80], command[1024];

	if (!sf_image_numbers_forget(&recorder->image_numbers, pid))
		return sf_fail_memory(err);
	if (recorder->offline) /* process_name() says the rest */
		return true;
	sf_process_program(pid, &program);
	if (!sf_recording_process_met(recorder->recording, pid, program.started, err))
		return false;
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

static bool on_process_forked(void *arg, int32_t pid, int32_t parent, struct sf_error *err)
{
	struct sf_recorder *recorder = arg;

	return sf_walker_know(&recorder->walker, parent, err) && sf_walker_fork(&recorder->walker, pid, parent, err);
}

static bool on_process_end(void *arg, int32_t pid, struct sf_error *err)
{
	struct sf_recorder *recorder = arg;

	sf_walker_end(&recorder->walker, pid);
	return sf_recording_process_ended(recorder->recording, pid, err);
}

static bool on_mapping(void *arg, int32_t pid, const struct sf_mapping *mapping, struct sf_error *err)
{
	struct sf_recorder *recorder = arg;

	return sf_walker_add_mapping(&recorder->walker, pid, mapping, err);
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
	thread = sf_recorder_thread(recorder, serial);
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
		struct sf_recorded_thread *thread = sf_recorder_thread(recorder, serial);

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
	struct sf_recorded_thread *thread = sf_recorder_thread(recorder, serial);

	if (!thread || !thread->number)
		return true;
	if (!sf_recorded_thread_flush(thread, recorder->recording, err))
		return false;
	sf_recorder_forget_suffix(recorder, thread);
	sf_tail_room_free(&recorder->tails, &thread->tail);
	sf_recorded_thread_deinit(thread);
	return sf_recording_thread_end(recorder->recording, thread->number, time_ns, cpu_ns, err);
}

static bool on_measure(void *arg, const struct sf_measure *measure, struct sf_error *err)
{
	struct sf_recorder *recorder = arg;
	struct sf_runtime_event_choice choice;

	if (measure->is_counted) {
		sf_recording_counted(recorder->recording, measure->counted);
		return true;
	}
	if (sf_runtime_has_event(measure->name) && sf_runtime_event_parse(measure->name, &choice, NULL))
		sf_recording_leave_out(recorder->recording, choice.event->left_out);
	return sf_recording_measure(recorder->recording, measure->name, measure->unit, err);
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
		return sf_recorder_note(recorder, pid, "code of more than 8,192 different files ran: of later ones only addresses are shown", err);
	known = sf_images_add(recorder->walker.images, recorder->offline ? 0 : pid, &seen);
	if (!known || !sf_image_numbers_add(&recorder->image_numbers, pid, image->number, known->number))
		return sf_fail_memory(err);
	if (!known->note[0])
		snprintf(known->note, sizeof(known->note), "%s", image->note);
	if (!recorder->offline)
		sf_images_load(recorder->walker.images);
	return true;
}

static bool on_describe(void *arg, int32_t pid, const struct sf_described_frame *frame,
			struct sf_error *err)
{
	struct sf_recorder *recorder = arg;

	return sf_frame_numbers_describe(&recorder->frame_numbers, recorder->recording, pid, frame->key,
				     frame->functions, frame->n, err);
}

static bool on_loss(void *arg, uint32_t serial, enum sf_loss cause, const struct sf_weight *weight,
		    struct sf_error *err)
{
	struct sf_recorder *recorder = arg;
	const struct sf_recorded_thread *thread = sf_recorder_thread(recorder, serial);

	(void)err;
	return sf_recorder_lose(recorder, thread ? thread->number : 0, cause, weight);
}

static bool on_engine_cost(void *arg, int32_t pid, uint64_t cpu_ns, struct sf_error *err)
{
	struct sf_recorder *recorder = arg;

	(void)pid;
	(void)err;
	recorder->inside_cpu_ns += cpu_ns;
	return true;
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
		.process_forked = on_process_forked,
		.process_end = on_process_end,
		.mapping = on_mapping,
		.process_name = on_process_name,
		.thread = on_thread,
		.thread_end = on_thread_end,
		.sample = sf_recorder_sample,
		.image = on_image,
		.trace = sf_recorder_trace,
		.describe = on_describe,
		.measure = on_measure,
		.engine_cost = on_engine_cost,
		.note = sf_recorder_note,
		.again = sf_recorder_again,
		.woken = sf_recorder_woken,
		.loss = on_loss,
		.idle = on_idle,
	};
}
