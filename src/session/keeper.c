/* SPDX-License-Identifier: Apache-2.0 */
#include "session/keeper.h"

#include <string.h>

#include "os/process.h"

#define FLUSH_NS 500000000
#define RENAME_NS 1000000000

/* Functions at one place; more are cut by the recording, too. */
#define SF_MAX_JAVA_FUNCTIONS 128

bool sf_keeper_init(struct sf_keeper *keeper, struct sf_recording *recording, uint32_t max_depth,
		    struct sf_error *err)
{
	*keeper = (struct sf_keeper){ .recording = recording };
	return sf_walker_init(&keeper->walker, max_depth, err);
}

void sf_keeper_deinit(struct sf_keeper *keeper)
{
	for (size_t i = 0; i < keeper->threads.n; i++)
		sf_earlier_deinit(&keeper->threads.items[i].earlier);
	sf_vec_deinit(&keeper->threads);
	sf_vec_deinit(&keeper->open);
	sf_walker_deinit(&keeper->walker);
}

static struct sf_kept_thread *find_thread(struct sf_keeper *keeper, uint32_t serial)
{
	return serial && serial <= keeper->threads.n ? &keeper->threads.items[serial - 1] : NULL;
}

static bool on_process(void *arg, int32_t pid, int32_t parent, struct sf_error *err)
{
	struct sf_keeper *keeper = arg;
	char name[64], command[1024];

	sf_process_name(pid, name, sizeof(name));
	sf_process_command(pid, command, sizeof(command));
	if (!sf_walker_forget(&keeper->walker, pid, err))
		return false;
	/* At once: it may not live long. Where it has ended already, its stills have no map. */
	sf_walker_prepare(&keeper->walker, pid, NULL);
	return sf_recording_process(keeper->recording, pid, parent, name, command, keeper->flushed_ns,
				    err);
}

static bool on_thread(void *arg, uint32_t serial, int32_t pid, int32_t tid, const char *name,
		      uint64_t time_ns, struct sf_error *err)
{
	struct sf_keeper *keeper = arg;
	struct sf_kept_thread *thread;

	while (keeper->threads.n < serial) {
		if (!sf_vec_push(&keeper->threads, (struct sf_kept_thread){ 0 }))
			return sf_fail_memory(err);
	}
	thread = find_thread(keeper, serial);
	thread->pid = pid;
	thread->tid = tid;
	if (thread->number && thread->java_named)
		return true; /* the system's name is the same, cut to 15 bytes, or will be asked for again */
	if (thread->number)
		return sf_recording_thread_name(keeper->recording, thread->number, name, err);
	return sf_recording_thread(keeper->recording, pid, tid, name, time_ns, &thread->number, err);
}

/* Writes the ticks that wait. */
static bool flush_thread(struct sf_keeper *keeper, struct sf_kept_thread *thread,
			 struct sf_error *err)
{
	if (!thread->last.ticks)
		return true;
	if (!sf_recording_sample(keeper->recording, &thread->last, err))
		return false;
	thread->last.ticks = 0;
	thread->last.cpu_ns = thread->last.wall_ns = 0;
	return true;
}

static bool flush_all(struct sf_keeper *keeper, uint64_t now_ns, struct sf_error *err)
{
	keeper->flushed_ns = now_ns;
	for (size_t i = 0; i < keeper->open.n; i++) {
		if (!flush_thread(keeper, find_thread(keeper, keeper->open.items[i]), err))
			return false;
	}
	keeper->open.n = 0;
	return true;
}

static bool on_thread_end(void *arg, uint32_t serial, uint64_t time_ns, uint64_t cpu_ns,
			  struct sf_error *err)
{
	struct sf_keeper *keeper = arg;
	struct sf_kept_thread *thread = find_thread(keeper, serial);

	if (!thread || !thread->number)
		return true;
	if (!flush_thread(keeper, thread, err))
		return false;
	sf_earlier_deinit(&thread->earlier);
	return sf_recording_thread_end(keeper->recording, thread->number, time_ns, cpu_ns, err);
}

/* The recording learns of an image before the first frame that is in it. */
static bool tell_modules(struct sf_keeper *keeper, struct sf_error *err)
{
	struct sf_images *images = keeper->walker.images;

	for (; keeper->n_modules < sf_images_count(images); keeper->n_modules++) {
		const struct sf_image *image = sf_images_get(images, keeper->n_modules + 1);
		struct sf_recording_module module = {
			.number = image->number,
			.path = image->path,
			.build_id = image->build_id,
			.build_id_size = image->build_id_size,
			.note = image->note,
		};

		if (!sf_recording_module(keeper->recording, &module, err))
			return false;
	}
	return true;
}

static enum sf_end walk(struct sf_keeper *keeper, struct sf_kept_thread *thread,
			struct sf_still *still)
{
	struct sf_trace *trace = &keeper->walker.trace;
	enum sf_end end = sf_walker_walk(&keeper->walker, still);

	if (end == SF_END_ROOT)
		sf_earlier_keep(&thread->earlier, trace);
	else if (end == SF_END_REGISTER)
		sf_earlier_complete(&thread->earlier, still, trace);
	return end;
}

/* A place of the virtual machine's code as the recording numbers it: described when it is new. */
static bool tell_place(struct sf_keeper *keeper, struct sf_java *java, uint32_t place,
		       uint32_t *ret, struct sf_error *err)
{
	struct sf_recording_name names[SF_MAX_JAVA_FUNCTIONS];
	const struct sf_java_function *functions;
	size_t n;

	while (java->recorded.n < place) {
		if (!sf_vec_push(&java->recorded, 0))
			return sf_fail_memory(err);
	}
	*ret = java->recorded.items[place - 1];
	if (*ret)
		return true;
	n = sf_jvm_functions(java->jvm, place, &functions);
	for (size_t i = 0; i < n && i < SF_MAX_JAVA_FUNCTIONS; i++) {
		names[i] = (struct sf_recording_name){
			.function = functions[i].name,
			.linkage = functions[i].linkage,
			.file = functions[i].file,
			.line = functions[i].line,
			.inlined = functions[i].inlined,
		};
	}
	if (!n || !sf_recording_place(keeper->recording, names, n, ret, err))
		return n ? false : sf_fail_memory(err);
	java->recorded.items[place - 1] = *ret;
	return true;
}

/* Describes what virtual machines made: now, as nobody can later. */
static bool tell_places(struct sf_keeper *keeper, int32_t pid, struct sf_error *err)
{
	struct sf_trace *trace = &keeper->walker.trace;
	struct sf_java *java = sf_walker_java(&keeper->walker, pid);
	uint32_t place, number;

	for (uint32_t i = 0; i < trace->n_frames; i++) {
		struct sf_frame *frame = &trace->frames[i];

		if (!sf_kind_is_managed(frame->kind))
			continue;
		place = java ? sf_jvm_place(java->jvm, frame) : 0;
		if (!place)
			return sf_fail_memory(err);
		if (!tell_place(keeper, java, place, &number, err))
			return false;
		frame->address = number;
	}
	return true;
}

/* The system keeps 15 bytes of a thread's name. Names change, and can sometimes not be read. */
static bool tell_java_name(struct sf_keeper *keeper, struct sf_kept_thread *thread, uint64_t now_ns,
			   struct sf_error *err)
{
	struct sf_java *java;
	char name[256];

	if (thread->named_ns && now_ns - thread->named_ns < RENAME_NS)
		return true;
	java = sf_walker_java(&keeper->walker, thread->pid);
	if (!java)
		return true;
	thread->named_ns = now_ns;
	if (!sf_java_name(java, thread->pid, thread->tid, name, sizeof(name)))
		return true;
	thread->java_named = true;
	return sf_recording_thread_name(keeper->recording, thread->number, name, err);
}

static bool keep(struct sf_keeper *keeper, struct sf_kept_thread *thread,
		 const struct sf_still *still, const struct sf_weight *weight, struct sf_error *err)
{
	const struct sf_trace *trace = &keeper->walker.trace;
	char label[80];
	struct sf_recording_sample sample = {
		.time_ns = still->time_ns,
		.thread = thread->number,
		.cpu_ns = weight->cpu_ns,
		.wall_ns = weight->wall_ns,
		.ticks = weight->ticks,
		.state = still->state,
		.end = (uint8_t)trace->end,
		.unheld = (still->flags & SF_STILL_UNHELD) != 0,
		.syscall = still->syscall,
	};

	if (!flush_thread(keeper, thread, err) || !tell_modules(keeper, err) ||
	    !tell_places(keeper, still->pid, err) ||
	    !tell_java_name(keeper, thread, still->time_ns, err) ||
	    !sf_recording_stack(keeper->recording, trace,
				sf_wait_label(still, label, sizeof(label)), &sample.stack, err) ||
	    !sf_recording_sample(keeper->recording, &sample, err))
		return false;
	thread->last = sample;
	thread->last.ticks = 0;
	thread->last.cpu_ns = thread->last.wall_ns = 0;
	thread->has_last = true;
	return true;
}

static uint64_t stack_used(const struct sf_still *still, const struct sf_trace *trace)
{
	uint64_t top = trace->n_frames ? trace->frames[trace->n_frames - 1].sp : 0;

	return top > still->memory.window_start ? top - still->memory.window_start : 0;
}

static struct sf_verdict on_sample(void *arg, uint32_t serial, struct sf_still *still,
				   const struct sf_weight *weight, uint64_t hold_ns, bool last,
				   struct sf_error *err)
{
	struct sf_keeper *keeper = arg;
	struct sf_kept_thread *thread = find_thread(keeper, serial);
	struct sf_verdict verdict = { .end = SF_END_EMPTY };

	if (!thread || !thread->number)
		return verdict;
	if (hold_ns)
		sf_recording_hold(keeper->recording, hold_ns);
	verdict.end = walk(keeper, thread, still);
	verdict.stack_used = stack_used(still, &keeper->walker.trace);
	if (verdict.end != SF_END_COPY || last)
		verdict.failed = !keep(keeper, thread, still, weight, err);
	return verdict;
}

static bool on_again(void *arg, uint32_t serial, uint64_t time_ns, const struct sf_weight *weight,
		     struct sf_error *err)
{
	struct sf_keeper *keeper = arg;
	struct sf_kept_thread *thread = find_thread(keeper, serial);

	if (!thread || !thread->number || !thread->has_last)
		return sf_recording_loss(keeper->recording, 0, SF_LOSS_MOVED, weight->ticks,
					 weight->cpu_ns, weight->wall_ns, err);
	if (!thread->last.ticks && !sf_vec_push(&keeper->open, serial))
		return sf_fail_memory(err);
	thread->last.time_ns = time_ns;
	thread->last.ticks += weight->ticks;
	thread->last.cpu_ns += weight->cpu_ns;
	thread->last.wall_ns += weight->wall_ns;
	return true;
}

static bool on_loss(void *arg, uint32_t serial, enum sf_loss cause, const struct sf_weight *weight,
		    struct sf_error *err)
{
	struct sf_keeper *keeper = arg;
	const struct sf_kept_thread *thread = find_thread(keeper, serial);

	return sf_recording_loss(keeper->recording, thread ? thread->number : 0, cause,
				 weight->ticks, weight->cpu_ns, weight->wall_ns, err);
}

static bool on_idle(void *arg, uint64_t now_ns, struct sf_error *err)
{
	struct sf_keeper *keeper = arg;

	if (now_ns - keeper->flushed_ns > FLUSH_NS && !flush_all(keeper, now_ns, err))
		return false;
	return sf_recording_tick(keeper->recording, now_ns, err);
}

struct sf_sink sf_keeper_sink(struct sf_keeper *keeper)
{
	return (struct sf_sink){
		.arg = keeper,
		.process = on_process,
		.thread = on_thread,
		.thread_end = on_thread_end,
		.sample = on_sample,
		.again = on_again,
		.loss = on_loss,
		.idle = on_idle,
	};
}
