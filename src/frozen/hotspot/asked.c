/* SPDX-License-Identifier: Apache-2.0 */
#include "frozen/hotspot/asked.h"

#include "frozen/hotspot/hotspot.h"
#include "frozen/inside.h"

#include "frozen/frozen.h"

_Static_assert(sizeof(struct sf_asked_frame) == 16, "ASGCT_CallFrame has 16 bytes");
_Static_assert(sizeof(struct sf_stream_frame) >= sizeof(struct sf_asked_frame),
	       "frames are asked for in the room of packed ones");

/* The workspace's own reader is for walks: it keeps what it knows of the last one. */
static bool read_self(const struct sf_reader *reader, void *ret, uint64_t addr, size_t size)
{
	return sf_self_read(reader->arg, ret, addr, size) == size;
}

/* 0: it is none of the virtual machine's, or not known to be one yet. */
static uint64_t find_thread(const struct sf_still *still, const struct sf_seat *seat)
{
	const struct sf_hotspot *hotspot = still->map ? still->map->hotspot : NULL;
	const struct sf_reader memory = { .read = read_self, .arg = &sf_inside.access };
	uint64_t thread = atomic_load_explicit(&seat->java_thread, memory_order_relaxed);

	if (!hotspot || !thread ||
	    atomic_load_explicit(&seat->flags, memory_order_relaxed) & SF_SEAT_LEFT_JAVA ||
	    !sf_hotspot_is_thread(hotspot, &memory, thread, still->tid))
		return 0;
	return thread;
}

static void add_frames(struct sf_trace *trace, const struct sf_asked_frame *frames, uint32_t n)
{
	for (uint32_t i = 0; i < n && trace->n_frames < trace->capacity; i++)
		trace->frames[trace->n_frames++] = (struct sf_frame){
			.via = SF_VIA_ASKED,
			.kind = SF_KIND_JAVA,
			.token = frames[i].method,
			.bci = frames[i].bci >= 0 ? frames[i].bci : -1,
		};
}

/* The machine leaves out what is below Java: there the stack ends for it. */
static enum sf_end end_of(const struct sf_trace *trace, int32_t answer, enum sf_end native)
{
	if (answer > 0)
		return trace->n_frames == trace->capacity ? SF_END_DEPTH : SF_END_ROOT;
	/* Native code that we could not walk through, and no Java below it. */
	if (answer == 0 && native != SF_END_RUNTIME)
		return native;
	return answer < -SF_ASKED_ERRORS ? SF_END_RUNTIME
					 : (enum sf_end)(SF_END_ASKED_0 - answer);
}

enum sf_end sf_asked_walk(struct sf_workspace *workspace, struct sf_still *still,
			  const struct sf_seat *seat, sf_ask_fn *ask, void *ucontext)
{
	struct sf_trace *trace = &workspace->trace;
	struct sf_asked_frame *frames = (struct sf_asked_frame *)workspace->packed;
	uint64_t thread = find_thread(still, seat);
	enum sf_end native;
	int32_t answer;

	if (!thread)
		return sf_inside_walk(workspace, still, seat);
	still->java_thread = 0;
	still->flags |= SF_STILL_TO_JAVA;
	native = sf_workspace_walk(workspace, still);
	still->flags &= ~(uint32_t)SF_STILL_TO_JAVA;
	if (native == SF_END_ROOT || native == SF_END_DEPTH)
		return native;
	answer = ask(frames, trace->capacity - trace->n_frames, thread, ucontext);
	if (answer > 0)
		add_frames(trace, frames, (uint32_t)answer);
	trace->end = end_of(trace, answer, native);
	return trace->end;
}
