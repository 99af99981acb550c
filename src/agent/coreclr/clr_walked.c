/* SPDX-License-Identifier: Apache-2.0 */
/* Samples and losses of the threads of a round. Each HRESULT of a call that walks stacks is the cause of a loss of its own. */
#include "agent/coreclr/clr_walked.h"

#include <stddef.h>

#include "agent/coreclr/clr_profiler.h"
#include "frozen/coreclr/coreclr.h"
#include "frozen/signal/handler.h"
#include "frozen/signal/weight.h"

/* --- losses --- */

/*
 * Of SuspendRuntime, EnumThreads, GetThreadInfo and DoStackSnapshot (CoreCLR: inc/corerror.xml, vm/proftoeeinterfaceimpl.cpp). To
 * add one: a line here, its cause in frozen/coreclr/words.h.
 */
static const struct {
	uint32_t result;
	enum sf_loss cause;
} results[] = {
	{ 0x8013135b, SF_LOSS_CLR_NOT_YET },        /* CORPROF_E_NOT_YET_AVAILABLE */
	{ 0x8013135e, SF_LOSS_CLR_TARGET },         /* CORPROF_E_STACKSNAPSHOT_INVALID_TGT_THREAD */
	{ 0x8013135f, SF_LOSS_CLR_UNMANAGED },      /* CORPROF_E_STACKSNAPSHOT_UNMANAGED_CTX */
	{ 0x80131360, SF_LOSS_CLR_UNSAFE },         /* CORPROF_E_STACKSNAPSHOT_UNSAFE */
	{ 0x80131361, SF_LOSS_CLR_ABORTED },        /* CORPROF_E_STACKSNAPSHOT_ABORTED */
	{ 0x80131363, SF_LOSS_CLR_SEQUENCE },       /* CORPROF_E_UNSUPPORTED_CALL_SEQUENCE */
	{ 0x80131364, SF_LOSS_CLR_ASYNCHRONOUS },   /* CORPROF_E_ASYNCHRONOUS_UNSAFE */
	{ 0x80131367, SF_LOSS_CLR_DETACHING },      /* CORPROF_E_PROFILER_DETACHING */
	{ 0x80131371, SF_LOSS_CLR_UNINITIALIZED },  /* CORPROF_E_RUNTIME_UNINITIALIZED */
	{ 0x80131374, SF_LOSS_CLR_FLAGS },          /* CORPROF_E_INCONSISTENT_WITH_FLAGS */
	{ 0x80131388, SF_LOSS_CLR_SUSPENDED },      /* CORPROF_E_SUSPENSION_IN_PROGRESS */
	{ 0x80004001, SF_LOSS_CLR_NOT_IMPLEMENTED }, /* E_NOTIMPL */
	{ 0x80004005, SF_LOSS_CLR_FAIL },           /* E_FAIL */
	{ 0x80070057, SF_LOSS_CLR_ARGUMENT },       /* E_INVALIDARG */
	{ 0x8007000e, SF_LOSS_CLR_MEMORY },         /* E_OUTOFMEMORY */
	{ 0x8000ffff, SF_LOSS_CLR_UNEXPECTED },     /* E_UNEXPECTED */
};

enum sf_loss sf_clr_loss(int32_t result)
{
	for (size_t i = 0; i < sizeof(results) / sizeof(*results); i++) {
		if (results[i].result == (uint32_t)result)
			return results[i].cause;
	}
	return SF_LOSS_CLR_OTHER;
}

void sf_clr_walked_lose(enum sf_loss cause, const struct sf_clr_walked *walked)
{
	struct sf_thread_entry *entry = walked->thread->entry;
	const struct sf_weight_taken taken = sf_weigh(entry, walked->cpu_ns, sf_handler.config.period_ns);

	sf_output_lose(&sf_handler.output, walked->thread->serial, cause, taken.cpu_ns, taken.wall_ns, taken.ticks);
}

void sf_clr_lose_call(int32_t result)
{
	sf_output_lose(&sf_handler.output, 0, sf_clr_loss(result), 0, 0, 1);
}

/* --- samples --- */

static struct sf_stream_sample sample_of(const struct sf_clr_round *round, const struct sf_clr_walked *walked)
{
	return (struct sf_stream_sample){
		.serial = walked->thread->serial,
		.time_ns = round->time_ns,
		.hold_ns = round->pause_ns,
		.ticks = 1,
		.label = atomic_load(&walked->thread->entry->label),
		.syscall = SF_SYSCALL_NONE,
		.state = SF_STATE_RUNNING,
	};
}

/* The workspace's trace, with the thread's CPU time since its last sample as its weight. */
static void put(const struct sf_clr_round *round, const struct sf_clr_walked *walked)
{
	struct sf_thread_entry *entry = walked->thread->entry;
	const struct sf_weight_taken taken = sf_weigh(entry, walked->cpu_ns, sf_handler.config.period_ns);
	struct sf_stream_sample sample = sample_of(round, walked);

	sample.cpu_ns = taken.cpu_ns;
	sample.wall_ns = taken.wall_ns;
	sample.ticks = taken.ticks;
	if (sf_handler_put(&sf_handler, round->workspace, &sample))
		atomic_fetch_add(&entry->n_samples, 1);
	else
		sf_output_lose(&sf_handler.output, walked->thread->serial, SF_LOSS_RING_FULL, taken.cpu_ns, taken.wall_ns,
			       taken.ticks);
}

/* Of the image with the runtime's own code; 0: not known. */
static uint32_t code_image(const struct sf_clr_round *round)
{
	const uint64_t own = (uint64_t)(uintptr_t)sf_clr_entry(round->info, 0);
	const struct sf_region *region = round->map ? sf_code_map_find(round->map, own) : NULL;

	return region ? region->image : 0;
}

static void put_walked(const struct sf_clr_round *round, struct sf_clr_walked *walked)
{
	struct sf_stream_sample second = sample_of(round, walked);
	const bool has_second = round->twice && walked->stack.n_own;

	sf_clr_stack_join(round->pool, round->info, round->map, code_image(round), &walked->stack, round->workspace);
	put(round, walked);
	if (!has_second)
		return;
	sf_clr_stack_own(round->pool, &walked->stack, round->workspace);
	sf_handler_put(&sf_handler, round->workspace, &second);
}

void sf_clr_walked_record(const struct sf_clr_round *round, struct sf_clr_walked *walked)
{
	const struct sf_clr_stack *stack = &walked->stack;

	if (!walked->is_managed) {
		atomic_fetch_and(&walked->thread->entry->flags, ~(uint32_t)SF_ENTRY_IN_ROUNDS);
		return;
	}
	walked->thread->ticked_cpu_ns = walked->cpu_ns;
	if (stack->is_full)
		sf_clr_walked_lose(SF_LOSS_CLR_NO_ROOM, walked);
	else if (stack->result < 0)
		sf_clr_walked_lose(sf_clr_loss(stack->result), walked);
	else if (!stack->n)
		sf_clr_walked_lose(SF_LOSS_CLR_NO_FRAMES, walked);
	else
		put_walked(round, walked);
}
