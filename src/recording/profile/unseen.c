/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CPU time, and events, that the kernel counted and that no sample stands for. Each loss with such becomes a sample of
 * its thread, marked `unseen`, whose stack is the one frame SF_UNSEEN_NAME. So the weights of a profile add up to what
 * was counted in every view and export, shares are shares of that, and what was not seen is a row of its own.
 */
#include "recording/profile/loader.h"

static uint32_t unseen_node(struct sf_loader *loader)
{
	const struct sf_profile_function form = { .name = sf_loader_string(loader, SF_UNSEEN_NAME), .kind = SF_KIND_CUT };
	const uint32_t function = form.name == UINT32_MAX ? 0 : sf_loader_function(loader, &form);
	const struct sf_profile_frame frame = { .function = function, .kind = SF_KIND_CUT };
	const struct sf_profile_node node = { .frame = (uint32_t)loader->frames.n };

	if (!function || !sf_vec_push(&loader->frames, frame) || !sf_vec_push(&loader->nodes, node))
		return 0;
	return (uint32_t)loader->nodes.n - 1;
}

/* Threads that came and went are in no row of the file. Their CPU time is that of one more thread, of the first process. */
static bool add_unknown_thread(struct sf_loader *loader, uint32_t *ret)
{
	const struct sf_profile_thread *first = loader->threads.n ? &loader->threads.items[0] : NULL;
	struct sf_profile_thread thread = {
		.pid = first ? first->pid : 0,
		.name = sf_loader_string(loader, SF_UNSEEN_NAME),
		.process_name = first ? first->process_name : 0,
		.end_ns = loader->profile->duration_ns,
	};

	*ret = (uint32_t)loader->threads.n;
	return thread.name != UINT32_MAX && sf_vec_push(&loader->threads, thread);
}

static bool add_unseen(struct sf_loader *loader, const struct sf_profile_loss *loss, uint32_t node, uint32_t *unknown)
{
	struct sf_profile_sample sample = {
		.thread = loss->thread,
		.node = node,
		.cpu_ns = loss->cpu_ns,
		.wall_ns = loss->cpu_ns,
		.amount = loss->amount,
		.state = SF_STATE_RUNNING,
		.end = SF_END_EMPTY,
		.syscall = SF_SYSCALL_NONE,
		.unseen = true,
	};

	if (sample.thread == UINT32_MAX) {
		if (*unknown == UINT32_MAX && !add_unknown_thread(loader, unknown))
			return false;
		sample.thread = *unknown;
	}
	sample.time_ns = loader->threads.items[sample.thread].end_ns;
	return sf_vec_push(&loader->samples, sample);
}

bool sf_loader_add_unseen(struct sf_loader *loader, struct sf_error *err)
{
	uint32_t node = 0, unknown = UINT32_MAX;

	for (size_t i = 0; i < loader->losses.n; i++) {
		const struct sf_profile_loss *loss = &loader->losses.items[i];

		if (!loss->cpu_ns && !loss->amount)
			continue;
		if (!node && !(node = unseen_node(loader)))
			return sf_fail_memory(err);
		if (!add_unseen(loader, loss, node, &unknown))
			return sf_fail_memory(err);
	}
	return true;
}
