/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds the runtimes of a watched process, with one reader of its memory for all of them. Describes each place in their
 * code once; from then on it has the recording's number.
 */
#include "session/process_runtimes.h"

#include "base/output.h"
#include "os/clock.h"
#include "os/task.h"

void sf_process_runtimes_deinit(struct sf_process_runtimes *runtimes)
{
	sf_runtimes_deinit(&runtimes->all);
	sf_memory_destroy(runtimes->memory);
	for (uint32_t i = 0; i < SF_N_RUNTIMES; i++)
		sf_vec_deinit(&runtimes->recorded[i].numbers);
	*runtimes = (struct sf_process_runtimes){ 0 };
}

static bool read_process(const struct sf_reader *reader, void *ret, uint64_t addr, size_t size)
{
	return reader->anew ? sf_memory_read_anew(reader->arg, ret, addr, size) : sf_memory_read(reader->arg, ret, addr, size);
}

void sf_process_runtimes_renew(struct sf_process_runtimes *runtimes)
{
	if (runtimes->memory)
		sf_memory_turn(runtimes->memory, runtimes->memory_id, runtimes->memory_id, sf_now_ns());
}

struct looking {
	struct sf_process_runtimes *runtimes;
	int32_t pid;
};

static bool prepare(void *arg, uint32_t slot, struct sf_reader *ret)
{
	const struct looking *looking = arg;
	struct sf_process_runtimes *runtimes = looking->runtimes;

	(void)slot;
	if (!runtimes->memory)
		runtimes->memory = sf_memory_create();
	if (!runtimes->memory)
		return false; /* the next look may find some */
	runtimes->memory_id = sf_process_live_id(looking->pid);
	sf_process_runtimes_renew(runtimes);
	*ret = (struct sf_reader){ .read = read_process, .arg = runtimes->memory };
	return true;
}

void sf_process_runtimes_look(struct sf_process_runtimes *runtimes, struct sf_process *process,
			      struct sf_images *images)
{
	struct looking looking = { runtimes, process->pid };

	if (sf_runtimes_look(&runtimes->all, process, images, prepare, &looking))
		sf_process_show_runtimes(process);
}

bool sf_process_runtimes_refresh(struct sf_process_runtimes *runtimes, struct sf_process *process,
				 bool unknown_code)
{
	if (!sf_runtimes_refresh(&runtimes->all, process, false, unknown_code))
		return false;
	sf_process_show_runtimes(process);
	sf_runtimes_release(&runtimes->all, NULL, NULL);
	return true;
}

/* In a container a runtime has other ids for its threads. */
static int32_t inner_id(struct sf_process_runtimes *runtimes, int32_t pid, int32_t tid)
{
	if (!runtimes->has_inner_ids) {
		runtimes->has_inner_ids = true;
		runtimes->inner_ids = sf_task_inner_id(pid, pid) != pid;
	}
	return runtimes->inner_ids ? sf_task_inner_id(pid, tid) : tid;
}

bool sf_process_runtimes_handles(struct sf_process_runtimes *runtimes, int32_t pid, int32_t tid,
				 uint64_t ret[SF_MAX_RUNTIMES])
{
	const int32_t inner = inner_id(runtimes, pid, tid);
	bool any = false;

	for (uint32_t i = 0; i < SF_N_RUNTIMES; i++) {
		ret[i] = sf_runtimes_thread(&runtimes->all, i, inner);
		any |= ret[i] != 0;
	}
	return any;
}

static void renew(void *arg)
{
	sf_process_runtimes_renew(arg);
}

enum sf_naming sf_process_runtimes_name(struct sf_process_runtimes *runtimes, int32_t pid, int32_t tid,
					char ret[SF_RUNTIME_NAME])
{
	enum sf_naming named = sf_runtimes_thread_name(&runtimes->all, inner_id(runtimes, pid, tid), renew, runtimes, ret);

	if (named == SF_NAMED)
		sf_sanitize(ret);
	return named;
}

bool sf_process_runtimes_lock_wait(struct sf_process_runtimes *runtimes, int32_t pid, int32_t tid,
				   const struct sf_trace *trace, bool timed, struct sf_lock_wait *ret)
{
	if (!sf_runtimes_lock_wait(&runtimes->all, inner_id(runtimes, pid, tid), trace, timed, renew, runtimes, ret))
		return false;
	sf_sanitize(ret->of);
	return true;
}

uint32_t sf_process_runtimes_awaiters(struct sf_process_runtimes *runtimes, const struct sf_still *still,
				      const struct sf_trace *trace, struct sf_frame ret[SF_MAX_AWAITERS],
				      uint32_t *at_ret)
{
	return sf_runtimes_awaiters(&runtimes->all, still, trace, renew, runtimes, ret, at_ret);
}

/* A place of a runtime's code as the recording numbers it: described when it is new. */
static bool number_place(struct sf_recording *recording, struct sf_process_runtimes *runtimes,
		       const struct sf_frame *frame, uint32_t place, uint32_t *ret,
		       struct sf_error *err)
{
	const struct sf_location *functions;
	struct sf_recorded_places *recorded = &runtimes->recorded[frame->runtime - 1];
	size_t n;

	while (recorded->numbers.n < place) {
		if (!sf_vec_push(&recorded->numbers, 0))
			return sf_fail_memory(err);
	}
	*ret = recorded->numbers.items[place - 1];
	if (*ret)
		return true;
	n = sf_runtimes_functions(&runtimes->all, frame, place, &functions);
	if (!n)
		return sf_fail_memory(err);
	if (!sf_recording_place(recording, functions, n, ret, err))
		return false;
	recorded->numbers.items[place - 1] = *ret;
	return true;
}

bool sf_process_runtimes_describe(struct sf_process_runtimes *runtimes, struct sf_recording *recording,
				  struct sf_frame *frames, uint32_t n_frames, struct sf_error *err)
{
	for (uint32_t i = 0; i < n_frames; i++) {
		struct sf_frame *frame = &frames[i];
		uint32_t place, number;

		if (!sf_kind_is_managed(frame->kind))
			continue;
		place = runtimes ? sf_runtimes_place(&runtimes->all, frame) : 0;
		if (!place)
			return sf_fail_memory(err);
		if (!number_place(recording, runtimes, frame, place, &number, err))
			return false;
		frame->kind = sf_runtimes_kind(&runtimes->all, frame, place);
		frame->address = number;
	}
	return true;
}
