/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The walk of a thread that is held in a slot, and what becomes of it: a record in the outbox, or a kept still
 * (kept_stills.h). Part of handler.h.
 * Signal-safe; called by the sampler, or by the thread itself in its handler.
 */
#include "frozen/signal/handler.h"

#include <stddef.h>
#include <string.h>

#include "frozen/raw.h"
#include "frozen/signal/weight.h"

#include "frozen/frozen.h"

#define MAX_PINS 16                    /* maps published while one is being pinned */

/* The map that a walk uses, published in the slot so that nobody frees it. agent/service/map_publisher.c is the other side. */
static const struct sf_code_map *pin_map(const struct sf_handler_code *code, struct sf_slot *slot)
{
	for (unsigned i = 0; i < MAX_PINS; i++) {
		const struct sf_code_map *map = atomic_load(&code->map);

		/*
		 * First said, then looked again: who frees it first takes it away, then looks here.
		 */
		atomic_store(&slot->map, map);
		if (atomic_load(&code->map) == map)
			return map;
	}
	atomic_store(&slot->map, NULL);
	return NULL;
}

static struct sf_stream_frame packed(const struct sf_frame *frame, const struct sf_frame_keys *keys)
{
	struct sf_stream_frame packed = {
		.address = frame->address,
		.image = frame->image,
		.via = frame->via,
		.flags = frame->flags,
	};

	if (sf_kind_is_managed(frame->kind)) {
		packed.address = keys ? sf_frame_keys_key(keys, frame) : 0;
		packed.image = 0;
		packed.kind = frame->kind;
	}
	return packed;
}

/* A managed frame leaves the process as its key (frame_keys.h). The first `skip` frames do not leave it. */
static void pack_frames(const struct sf_handler_code *code, struct sf_workspace *workspace, uint32_t skip)
{
	struct sf_frame_keys *keys = atomic_load_explicit(&code->frame_keys, memory_order_acquire);
	const struct sf_frame *frames = workspace->trace.frames;
	const uint32_t n = workspace->trace.n_frames;

	for (uint32_t i = skip; i < n; i++)
		workspace->packed[i] = packed(&frames[i], keys);
	for (uint32_t i = skip; keys && i < n; i++) {
		if (sf_kind_is_managed(frames[i].kind))
			sf_frame_keys_queue(keys, &frames[i], workspace->packed[i].address);
	}
}

/*
 * The service thread clears map_stale before its search for new code. So only the first of several
 * walks that meet new code wakes the service thread.
 */
void sf_handler_note_stale_map(struct sf_handler *handler)
{
	if (!atomic_load_explicit(&handler->code.map_stale, memory_order_relaxed) &&
	    !atomic_exchange(&handler->code.map_stale, SF_MAP_LACKS_CODE))
		sf_wake_up_post(&handler->output.wake_up);
}

void sf_handler_note_gone_code(struct sf_handler *handler)
{
	atomic_store(&handler->code.map_stale, SF_MAP_MISLEADS);
	sf_wake_up_post(&handler->output.wake_up);
}

void sf_handler_pack(struct sf_handler *handler, struct sf_workspace *workspace, uint32_t skip)
{
	if (sf_trace_may_be_stale(&workspace->trace))
		sf_handler_note_stale_map(handler);
	pack_frames(&handler->code, workspace, skip);
}

bool sf_handler_put(struct sf_handler *handler, struct sf_workspace *workspace,
		    struct sf_stream_sample *sample)
{
	const struct sf_trace *trace = &workspace->trace;

	sample->n_frames = trace->n_frames;
	sample->end = (uint8_t)trace->end;
	sf_handler_pack(handler, workspace, 0);
	return sf_output_put_record(&handler->output, SF_STREAM_SAMPLE, sample, sizeof(*sample), workspace->packed,
				    trace->n_frames * sizeof(struct sf_stream_frame));
}

void sf_handler_lose(struct sf_handler_output *output, struct sf_thread_entry *entry, const struct sf_stream_sample *sample,
		     enum sf_loss cause)
{
	if (sf_output_lose(output, sample->serial, cause, sample->cpu_ns, sample->wall_ns, sample->ticks) || !entry)
		return;
	atomic_fetch_sub_explicit(&entry->accounted_ns, sample->cpu_ns, memory_order_relaxed);
	atomic_fetch_add_explicit(&entry->run_delay_ns, sample->wall_ns - sample->cpu_ns,
				  memory_order_relaxed);
}

static void fill_sample(const struct sf_slot *slot, const struct sf_thread_entry *entry,
			struct sf_stream_sample *ret)
{
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

static void put_sample(struct sf_handler *handler, struct sf_workspace *workspace,
		       const struct sf_slot *slot)
{
	struct sf_thread_entry *entry = &handler->link.entries[slot->entry];
	struct sf_stream_sample sample;

	fill_sample(slot, entry, &sample);
	if (sf_handler_put(handler, workspace, &sample))
		atomic_fetch_add_explicit(&entry->n_samples, 1, memory_order_relaxed);
	else
		sf_handler_lose(&handler->output, entry, &sample, SF_LOSS_RING_FULL);
}

static struct sf_kept_still *claim_kept(struct sf_kept_stills *kept)
{
	for (uint32_t i = 0; i < SF_N_KEPT_STILLS; i++) {
		uint32_t word = SF_KEPT_FREE;

		if (atomic_compare_exchange_strong(&kept->items[i].state, &word, SF_KEPT_FILLING))
			return &kept->items[i];
	}
	return NULL;
}

/*
 * Keeps a still that has just been walked, and is still held, with the sample of it, which has no frames yet. False: it is
 * not kept, and the caller puts the sample. `kept` may be NULL.
 */
static bool keep_still(struct sf_kept_stills *kept, const struct sf_own_memory *memory, const struct sf_still *still,
		       uint64_t n_searches, uint32_t entry, const struct sf_stream_sample *sample)
{
	struct sf_kept_still *item;

	if (!kept || !still->map || atomic_load_explicit(&kept->hurry, memory_order_relaxed) ||
	    sample->time_ns < atomic_load_explicit(&kept->not_before_ns, memory_order_relaxed))
		return false;
	item = claim_kept(kept);
	if (!item)
		return false;
	item->entry = entry;
	item->tid = still->tid;
	item->regs = still->regs;
	item->sample = (struct sf_kept_sample){
		.time_ns = sample->time_ns, .cpu_ns = sample->cpu_ns, .wall_ns = sample->wall_ns,
		.serial = sample->serial, .ticks = sample->ticks, .label = sample->label, .state = sample->state,
	};
	item->map_serial = still->map->serial;
	item->n_searches = n_searches;
	item->stack_start = sf_workspace_piece_start(still->regs.r[still->arch->sp]);
	item->stack_size = sf_own_memory_read(memory, item->stack, item->stack_start, SF_KEPT_STACK);
	item->sample.hold_ns = sf_raw_now_ns() - sample->time_ns; /* the copy is a part of it */
	atomic_fetch_add(&kept->n, 1);
	atomic_store_explicit(&item->state, SF_KEPT_FULL, memory_order_release);
	return true;
}

/* True: the walk met code that the map may get soon. The sample comes later. */
static bool keep(struct sf_handler *handler, const struct sf_workspace *workspace, const struct sf_slot *slot)
{
	struct sf_thread_entry *entry = &handler->link.entries[slot->entry];
	struct sf_stream_sample sample;

	if (!sf_kept_stills_want(&workspace->trace))
		return false;
	fill_sample(slot, entry, &sample);
	if (!keep_still(handler->link.kept, &handler->code.memory, &workspace->still, atomic_load(&handler->code.n_searches),
			slot->entry, &sample))
		return false;
	atomic_fetch_add_explicit(&entry->n_samples, 1, memory_order_relaxed);
	sf_handler_note_stale_map(handler);
	return true;
}

/* A second sample of the same moment, by the other walk: it stands for no time. */
static void put_twin(struct sf_handler *handler, struct sf_workspace *workspace,
		     const struct sf_slot *slot)
{
	struct sf_stream_sample sample;

	fill_sample(slot, &handler->link.entries[slot->entry], &sample);
	sample.cpu_ns = sample.wall_ns = 0;
	sample.ticks = 1;
	sf_handler_put(handler, workspace, &sample);
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

enum sf_end sf_handler_walk(const struct sf_handler_code *code, struct sf_workspace *workspace,
			    struct sf_still *still, const struct sf_thread_entry *entry)
{
	enum sf_end end;

	for (unsigned i = 0; i < SF_MAX_RUNTIMES; i++)
		workspace->caches[i] = atomic_load_explicit(&code->caches[i],
							    memory_order_acquire);
	memset(still->handles, 0, sizeof(still->handles));
	end = sf_workspace_walk(workspace, still);
	if (!entry || !may_lead_on(end) || !find_handles(still, entry))
		return end;
	return sf_workspace_walk(workspace, still);
}

/* Only the thread itself can call the runtime, in its handler. */
static sf_own_walk_fn *own_walk_of(const struct sf_handler_code *code,
				   const struct sf_workspace *workspace, const struct sf_slot *slot)
{
	return workspace == slot->workspace ?
		atomic_load_explicit(&code->own_walk, memory_order_acquire) : NULL;
}

void sf_handler_fill_still(const struct sf_handler *handler, struct sf_slot *slot, struct sf_still *ret)
{
	ret->arch = handler->config.arch;
	ret->regs = slot->regs;
	ret->map = pin_map(&handler->code, slot);
	ret->pid = handler->config.pid;
	ret->tid = slot->tid;
	ret->flags = 0;
	ret->state = SF_STATE_RUNNING;
	ret->syscall = SF_SYSCALL_NONE;
	ret->time_ns = slot->tick_ns;
}

static enum sf_end sample_by_held_walk(struct sf_handler *handler, sf_held_walk_fn *held_walk,
				       struct sf_workspace *workspace, const struct sf_slot *slot,
				       struct sf_still *still)
{
	struct sf_thread_entry *entry = &handler->link.entries[slot->entry];
	struct sf_stream_sample lost;
	enum sf_loss cause;

	if (held_walk(&handler->code, workspace, still, entry, &cause)) {
		put_sample(handler, workspace, slot);
	} else {
		fill_sample(slot, entry, &lost);
		sf_handler_lose(&handler->output, entry, &lost, cause);
	}
	if (handler->config.walks_twice) {
		sf_handler_walk(&handler->code, workspace, still, entry);
		put_twin(handler, workspace, slot);
	}
	return workspace->trace.end;
}

static enum sf_end sample_by_own_walk(struct sf_handler *handler, sf_own_walk_fn *own_walk,
				      struct sf_workspace *workspace, const struct sf_slot *slot,
				      struct sf_still *still)
{
	const struct sf_thread_entry *entry = &handler->link.entries[slot->entry];
	void *ucontext = (void *)(uintptr_t)slot->ucontext;
	const bool twice = own_walk && handler->config.walks_twice;
	enum sf_end end;

	end = own_walk && !twice ? own_walk(&handler->code, workspace, still, entry, ucontext) :
				   sf_handler_walk(&handler->code, workspace, still, entry);
	if (own_walk || !keep(handler, workspace, slot))
		put_sample(handler, workspace, slot);
	if (twice) {
		end = own_walk(&handler->code, workspace, still, entry, ucontext);
		put_twin(handler, workspace, slot);
	}
	return end;
}

enum sf_end sf_handler_sample(struct sf_handler *handler, struct sf_workspace *workspace,
			      struct sf_slot *slot)
{
	struct sf_thread_entry *entry = &handler->link.entries[slot->entry];
	sf_held_walk_fn *held_walk = atomic_load_explicit(&handler->code.held_walk, memory_order_acquire);
	sf_own_walk_fn *own_walk = own_walk_of(&handler->code, workspace, slot);
	struct sf_still *still = &workspace->still;
	enum sf_end end;

	if (!slot->weighed)
		sf_weigh_requested(slot, entry, handler->config.period_ns);
	sf_handler_fill_still(handler, slot, still);
	end = held_walk ? sample_by_held_walk(handler, held_walk, workspace, slot, still) :
			  sample_by_own_walk(handler, own_walk, workspace, slot, still);
	atomic_store_explicit(&slot->map, NULL, memory_order_release);
	return end;
}
