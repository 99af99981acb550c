/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A walk by HotSpot's AsyncGetCallTrace, of the calling thread in its signal handler. Signal-safe
 * as far as AsyncGetCallTrace is (docs/hotspot.md).
 */
#include "frozen/hotspot/agct.h"

#include "frozen/hotspot/hotspot.h"

#include "frozen/frozen.h"

_Static_assert(sizeof(struct sf_agct_frame) == 16, "ASGCT_CallFrame has 16 bytes");
_Static_assert(sizeof(struct sf_stream_frame) >= sizeof(struct sf_agct_frame),
	       "frames are asked for in the room of packed ones");

sf_ask_fn *_Atomic sf_agct_ask;

/* Not the workspace's reader: that one caches memory of the last walk. */
static bool read_self(const struct sf_reader *reader, void *ret, uint64_t addr, size_t size)
{
	return sf_own_memory_read(reader->arg, ret, addr, size) == size;
}

/* 0: it is none of the virtual machine's, or not known to be one yet. */
static uint64_t find_thread(const struct sf_handler_code *code, const struct sf_still *still,
			    const struct sf_thread_entry *entry)
{
	const struct sf_hotspot *hotspot = sf_hotspot_of(still->map);
	const struct sf_reader memory = { .read = read_self, .arg = (void *)(uintptr_t)&code->memory };
	uint64_t thread = hotspot ? atomic_load_explicit(&entry->handles[hotspot->runtime.slot],
							 memory_order_relaxed) : 0;

	if (!thread ||
	    atomic_load_explicit(&entry->flags, memory_order_relaxed) & SF_ENTRY_LEFT_RUNTIME ||
	    !sf_hotspot_is_thread(hotspot, &memory, thread, still->tid))
		return 0;
	return thread;
}

static void add_frames(struct sf_trace *trace, uint32_t slot, const struct sf_agct_frame *frames,
		       uint32_t n)
{
	for (uint32_t i = 0; i < n && trace->n_frames < trace->capacity; i++)
		trace->frames[trace->n_frames++] = (struct sf_frame){
			.via = SF_VIA_AGCT,
			.kind = SF_KIND_MANAGED,
			.runtime = (uint8_t)(slot + 1),
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
	return answer < -SF_AGCT_ERRORS ? SF_END_RUNTIME
					 : (enum sf_end)(SF_END_AGCT_0 - answer);
}

enum sf_end sf_agct_walk(const struct sf_handler_code *code, struct sf_workspace *workspace,
			  struct sf_still *still, const struct sf_thread_entry *entry, void *ucontext)
{
	struct sf_trace *trace = &workspace->trace;
	struct sf_agct_frame *frames = (struct sf_agct_frame *)workspace->packed;
	sf_ask_fn *ask = atomic_load_explicit(&sf_agct_ask, memory_order_acquire);
	uint64_t thread = ask ? find_thread(code, still, entry) : 0;
	enum sf_end native;
	int32_t answer;

	if (!thread)
		return sf_handler_walk(code, workspace, still, entry);
	memset(still->handles, 0, sizeof(still->handles));
	still->flags |= SF_STILL_TO_RUNTIME;
	native = sf_workspace_walk(workspace, still);
	still->flags &= ~(uint32_t)SF_STILL_TO_RUNTIME;
	if (native == SF_END_ROOT || native == SF_END_DEPTH)
		return native;
	answer = ask(frames, trace->capacity - trace->n_frames, thread, ucontext);
	if (answer > 0)
		add_frames(trace, sf_hotspot_of(still->map)->runtime.slot, frames, (uint32_t)answer);
	trace->end = end_of(trace, answer, native);
	return trace->end;
}
