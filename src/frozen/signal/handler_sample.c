/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The walk of a thread that is held in a slot, and its record in the outbox: part of handler.h.
 * Signal-safe; called by the sampler, or by the thread itself in its handler.
 */
#include "frozen/signal/handler.h"

#include <stddef.h>
#include <string.h>

#include "frozen/raw.h"
#include "frozen/signal/weight.h"

#include "frozen/frozen.h"

#define MAX_PINS 16                    /* maps published while one is being pinned */

/*
 * The map that a walk uses, published in the slot so that nobody frees it. See service.h for the
 * other side.
 */
static const struct sf_code_map *pin_map(struct sf_slot *slot)
{
	for (unsigned i = 0; i < MAX_PINS; i++) {
		const struct sf_code_map *map = atomic_load(&sf_handler.map);

		/*
		 * First said, then looked again: who frees it first takes it away, then looks here.
		 */
		atomic_store(&slot->map, map);
		if (atomic_load(&sf_handler.map) == map)
			return map;
	}
	atomic_store(&slot->map, NULL);
	return NULL;
}

static bool is_map_stale(const struct sf_trace *trace)
{
	const struct sf_frame *last;

	switch (trace->end) {
	case SF_END_NO_CODE:
	case SF_END_NO_RULE:
	case SF_END_STUCK:
		return true;
	default:
		break;
	}
	last = trace->n_frames ? &trace->frames[trace->n_frames - 1] : NULL;
	return last && last->image == 0 && !sf_kind_is_managed(last->kind);
}

static struct sf_stream_frame packed(const struct sf_frame *frame, const struct sf_frame_keys *places)
{
	struct sf_stream_frame packed = {
		.address = frame->address,
		.image = frame->image,
		.via = frame->via,
		.flags = frame->flags,
	};

	if (sf_kind_is_managed(frame->kind)) {
		packed.address = places ? sf_frame_keys_key(places, frame) : 0;
		packed.image = 0;
		packed.kind = frame->kind;
	}
	return packed;
}

/* Of managed code the key leaves, and what is there is told once (frame_keys.h). */
static void pack_frames(struct sf_workspace *workspace)
{
	struct sf_frame_keys *places = atomic_load_explicit(&sf_handler.places, memory_order_acquire);
	const struct sf_frame *frames = workspace->trace.frames;
	const uint32_t n = workspace->trace.n_frames;

	for (uint32_t i = 0; i < n; i++)
		workspace->packed[i] = packed(&frames[i], places);
	for (uint32_t i = 0; places && i < n; i++) {
		if (sf_kind_is_managed(frames[i].kind))
			sf_frame_keys_meet(places, &frames[i], workspace->packed[i].address);
	}
}

bool sf_handler_tell(uint16_t type, const struct sf_outbox_piece *pieces, unsigned n)
{
	struct sf_outbox_header *outbox =
		atomic_load_explicit(&sf_handler.outbox, memory_order_acquire);
	const uint64_t full =
		atomic_load_explicit(&sf_handler.outbox_full, memory_order_relaxed);
	bool put;

	if (!outbox)
		return true;
	put = sf_outbox_put(outbox, type, pieces, n);
	if (full && sf_outbox_used(outbox) >= full)
		sf_wake_up_post(&sf_handler.service_wake_up);
	return put;
}

/*
 * The service thread clears map_stale before its search for new code. So only the first of several
 * walks that meet new code wakes the service thread.
 */
static void note_stale_map(void)
{
	if (!atomic_load_explicit(&sf_handler.map_stale, memory_order_relaxed) &&
	    !atomic_exchange(&sf_handler.map_stale, 1))
		sf_wake_up_post(&sf_handler.service_wake_up);
}

bool sf_handler_put(struct sf_workspace *workspace, struct sf_stream_sample *sample)
{
	const struct sf_trace *trace = &workspace->trace;
	const size_t header = sizeof(struct sf_record_header);
	const struct sf_outbox_piece pieces[] = {
		{ (const uint8_t *)sample + header, sizeof(*sample) - header },
		{ workspace->packed, trace->n_frames * sizeof(struct sf_stream_frame) },
	};

	sample->n_frames = trace->n_frames;
	sample->end = (uint8_t)trace->end;
	if (is_map_stale(trace))
		note_stale_map();
	pack_frames(workspace);
	return sf_handler_tell(SF_STREAM_SAMPLE, pieces, 2);
}

bool sf_handler_lose(uint32_t serial, enum sf_loss cause, uint64_t cpu_ns, uint64_t wall_ns,
		    uint32_t ticks)
{
	const struct sf_stream_loss loss = {
		.serial = serial,
		.cause = cause,
		.cpu_ns = cpu_ns,
		.wall_ns = wall_ns,
		.ticks = ticks,
	};
	const size_t header = sizeof(struct sf_record_header);
	const struct sf_outbox_piece piece = { (const uint8_t *)&loss + header,
					       sizeof(loss) - header };

	return sf_handler_tell(SF_STREAM_LOSS, &piece, 1);
}

/*
 * The sample found no room. Nor did the loss: then the next sample of the thread speaks for this
 * one, too.
 */
static void lose_sample(struct sf_thread_entry *entry, const struct sf_slot *slot)
{
	if (sf_handler_lose(entry->serial, SF_LOSS_RING_FULL, slot->cpu_ns, slot->wall_ns,
			   slot->ticks))
		return;
	atomic_fetch_sub_explicit(&entry->spoken_ns, slot->cpu_ns, memory_order_relaxed);
	atomic_fetch_add_explicit(&entry->waited_ns, slot->wall_ns - slot->cpu_ns,
				  memory_order_relaxed);
}

static void fill_sample(const struct sf_slot *slot, struct sf_stream_sample *ret)
{
	const struct sf_thread_entry *entry = &sf_handler.entries[slot->entry];

	*ret = (struct sf_stream_sample){
		.serial = atomic_load_explicit(&entry->serial, memory_order_relaxed),
		.time_ns = slot->tick_ns,
		.cpu_ns = slot->cpu_ns,
		.wall_ns = slot->wall_ns,
		.hold_ns = sf_raw_now_ns() - slot->entered_ns,
		.ticks = slot->ticks,
		.label = slot->label,
		.syscall = SF_SYSCALL_NONE,
		.state = slot->cpu_ns ? SF_STATE_RUNNING : SF_STATE_RUNNABLE,
	};
}

static void put_sample(struct sf_workspace *workspace, const struct sf_slot *slot)
{
	struct sf_thread_entry *entry = &sf_handler.entries[slot->entry];
	struct sf_stream_sample sample;

	fill_sample(slot, &sample);
	if (sf_handler_put(workspace, &sample))
		atomic_fetch_add_explicit(&entry->n_samples, 1, memory_order_relaxed);
	else
		lose_sample(entry, slot);
}

/* The same moment once more, seen otherwise: it stands for no time. */
static void put_twin(struct sf_workspace *workspace, const struct sf_slot *slot)
{
	struct sf_stream_sample sample;

	fill_sample(slot, &sample);
	sample.cpu_ns = sample.wall_ns = 0;
	sample.ticks = 1;
	sf_handler_put(workspace, &sample);
}

static bool may_lead_on(enum sf_end end)
{
	return end != SF_END_ROOT && end != SF_END_DEPTH && end != SF_END_EMPTY;
}

/* The thread's handles, as far as they are not out of date. False: there is none. */
static bool find_handles(struct sf_still *still, const struct sf_thread_entry *entry)
{
	bool found = false;

	for (size_t i = 0; still->map && i < still->map->n_runtimes; i++) {
		const struct sf_runtime *runtime = still->map->runtimes[i];
		const uint64_t handle = atomic_load_explicit(&entry->handles[runtime->slot],
							     memory_order_relaxed);

		if (!handle || !runtime->ops->is_thread ||
		    !runtime->ops->is_thread(runtime, &still->memory, handle, still->tid))
			continue;
		still->handles[runtime->slot] = handle;
		found = true;
	}
	return found;
}

enum sf_end sf_handler_walk(struct sf_workspace *workspace, struct sf_still *still,
			   const struct sf_thread_entry *entry)
{
	enum sf_end end;

	for (unsigned i = 0; i < SF_MAX_RUNTIMES; i++)
		workspace->caches[i] = atomic_load_explicit(&sf_handler.caches[i],
							    memory_order_acquire);
	memset(still->handles, 0, sizeof(still->handles));
	end = sf_workspace_walk(workspace, still);
	if (!entry || !may_lead_on(end) || !find_handles(still, entry))
		return end;
	return sf_workspace_walk(workspace, still);
}

/* Only the thread itself can call the runtime, in its handler. */
static sf_own_walk_fn *own_walk_of(const struct sf_workspace *workspace, const struct sf_slot *slot)
{
	return workspace == slot->workspace ?
		atomic_load_explicit(&sf_handler.own_walk, memory_order_acquire) : NULL;
}

static enum sf_end walk_by(sf_own_walk_fn *own_walk, struct sf_workspace *workspace,
			   const struct sf_slot *slot)
{
	return own_walk(workspace, &workspace->still, &sf_handler.entries[slot->entry],
			(void *)(uintptr_t)slot->ucontext);
}

enum sf_end sf_handler_sample(struct sf_workspace *workspace, struct sf_slot *slot)
{
	struct sf_still *still = &workspace->still;
	sf_own_walk_fn *own_walk = own_walk_of(workspace, slot);
	enum sf_end end;

	if (slot->ticks == SF_TICKS_UNWEIGHED)
		sf_weigh_asked(slot, &sf_handler.entries[slot->entry]);
	still->arch = sf_handler.arch;
	still->regs = slot->regs;
	still->map = pin_map(slot);
	still->pid = sf_handler.pid;
	still->tid = slot->tid;
	still->flags = 0;
	still->state = SF_STATE_RUNNING;
	still->syscall = SF_SYSCALL_NONE;
	still->time_ns = slot->tick_ns;
	end = own_walk && !sf_handler.walks_twice ?
		walk_by(own_walk, workspace, slot) :
		sf_handler_walk(workspace, still, &sf_handler.entries[slot->entry]);
	put_sample(workspace, slot);
	if (own_walk && sf_handler.walks_twice) {
		end = walk_by(own_walk, workspace, slot);
		put_twin(workspace, slot);
	}
	atomic_store_explicit(&slot->map, NULL, memory_order_release);
	return end;
}
