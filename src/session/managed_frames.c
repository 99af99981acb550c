/* SPDX-License-Identifier: Apache-2.0 */
/* Places in the code of runtimes, described once and then known by the recording's numbers. */
#include "session/managed_frames.h"

/* A place of a runtime's code as the recording numbers it: described when it is new. */
static bool tell_place(struct sf_recording *recording, struct sf_process_runtimes *runtimes,
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

bool sf_managed_frames(struct sf_walker *walker, struct sf_recording *recording, int32_t pid,
		    uint32_t n_frames, struct sf_error *err)
{
	struct sf_trace *trace = &walker->trace;
	struct sf_process_runtimes *runtimes = NULL;

	for (uint32_t i = 0; i < n_frames; i++) {
		struct sf_frame *frame = &trace->frames[i];
		uint32_t place, number;

		if (!sf_kind_is_managed(frame->kind))
			continue;
		if (!runtimes)
			runtimes = sf_walker_runtimes(walker, pid);
		place = runtimes ? sf_runtimes_place(&runtimes->all, frame) : 0;
		if (!place)
			return sf_fail_memory(err);
		if (!tell_place(recording, runtimes, frame, place, &number, err))
			return false;
		frame->address = number;
	}
	return true;
}

bool sf_service_thread_name(struct sf_walker *walker, int32_t pid, int32_t tid,
			 char ret[SF_SERVICE_NAME])
{
	struct sf_process_runtimes *runtimes = sf_walker_runtimes(walker, pid);

	return runtimes && sf_process_runtimes_name(runtimes, pid, tid, ret, SF_SERVICE_NAME);
}
