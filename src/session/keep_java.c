/* SPDX-License-Identifier: Apache-2.0 */
#include "session/keep_java.h"

/* Functions at one place, at most. */
#define MAX_FUNCTIONS 128

/* A place of the virtual machine's code as the recording numbers it: described when it is new. */
static bool tell_place(struct sf_recording *recording, struct sf_java *java, uint32_t place,
		       uint32_t *ret, struct sf_error *err)
{
	struct sf_recording_name names[MAX_FUNCTIONS];
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
	if (!n)
		return sf_fail_memory(err);
	n = n < MAX_FUNCTIONS ? n : MAX_FUNCTIONS;
	for (size_t i = 0; i < n; i++) {
		names[i] = (struct sf_recording_name){
			.function = functions[i].name,
			.linkage = functions[i].linkage,
			.file = functions[i].file,
			.line = functions[i].line,
			.inlined = functions[i].inlined,
			.approximate = functions[i].approximate,
		};
	}
	if (!sf_recording_place(recording, names, n, ret, err))
		return false;
	java->recorded.items[place - 1] = *ret;
	return true;
}

bool sf_keep_java_places(struct sf_walker *walker, struct sf_recording *recording, int32_t pid,
			 uint32_t n_frames, struct sf_error *err)
{
	struct sf_trace *trace = &walker->trace;
	struct sf_java *java = NULL;

	for (uint32_t i = 0; i < n_frames; i++) {
		struct sf_frame *frame = &trace->frames[i];
		uint32_t place, number;

		if (!sf_kind_is_managed(frame->kind))
			continue;
		if (!java)
			java = sf_walker_java(walker, pid);
		place = java ? sf_jvm_place(java->jvm, frame) : 0;
		if (!place)
			return sf_fail_memory(err);
		if (!tell_place(recording, java, place, &number, err))
			return false;
		frame->address = number;
	}
	return true;
}

bool sf_keep_java_name(struct sf_walker *walker, int32_t pid, int32_t tid,
		       char ret[SF_KEEP_JAVA_NAME])
{
	struct sf_java *java = sf_walker_java(walker, pid);

	return java && sf_java_name(java, pid, tid, ret, SF_KEEP_JAVA_NAME);
}
