/* SPDX-License-Identifier: Apache-2.0 */
/* The runtimes of one process: each function goes to the drivers in the list, and there is nothing else here. */
#include "runtime/runtimes.h"

#define MAX_EXPECTED 128

#define X(name, driver, agent) extern const struct sf_runtime_driver driver;
SF_RUNTIMES(X)
#undef X

static const struct sf_runtime_driver *const drivers[] = {
#define X(name, driver, agent) &driver,
	SF_RUNTIMES(X)
#undef X
};

const struct sf_runtime_driver *sf_runtimes_driver(uint32_t slot)
{
	return drivers[slot];
}

void sf_runtimes_deinit(struct sf_runtimes *runtimes)
{
	for (uint32_t i = 0; i < SF_N_RUNTIMES; i++) {
		if (runtimes->states[i])
			drivers[i]->destroy(runtimes->states[i]);
	}
	*runtimes = (struct sf_runtimes){ 0 };
}

static bool attach(struct sf_runtimes *runtimes, uint32_t slot, struct sf_process *process,
		   struct sf_images *images, sf_runtimes_prepare_fn *prepare, void *arg)
{
	struct sf_reader memory;

	if (!runtimes->states[slot])
		runtimes->states[slot] = drivers[slot]->create();
	if (!runtimes->states[slot] || runtimes->attached[slot] ||
	    !drivers[slot]->look(runtimes->states[slot], process, images) ||
	    !prepare(arg, slot, &memory))
		return false;
	runtimes->attached[slot] =
		drivers[slot]->attach(runtimes->states[slot], process, images, &memory);
	return runtimes->attached[slot];
}

bool sf_runtimes_look(struct sf_runtimes *runtimes, struct sf_process *process,
		      struct sf_images *images, sf_runtimes_prepare_fn *prepare, void *arg)
{
	bool any = false;

	for (uint32_t i = 0; i < SF_N_RUNTIMES; i++)
		any |= attach(runtimes, i, process, images, prepare, arg);
	return any;
}

bool sf_runtimes_any(const struct sf_runtimes *runtimes)
{
	bool any = false;

	for (uint32_t i = 0; i < SF_N_RUNTIMES; i++)
		any |= runtimes->attached[i];
	return any;
}

void sf_runtimes_refresh(struct sf_runtimes *runtimes)
{
	for (uint32_t i = 0; i < SF_N_RUNTIMES; i++) {
		if (runtimes->attached[i] && drivers[i]->refresh)
			drivers[i]->refresh(runtimes->states[i]);
	}
}

const char *sf_runtimes_news(struct sf_runtimes *runtimes)
{
	const char *news = NULL;

	for (uint32_t i = 0; i < SF_N_RUNTIMES && !news; i++) {
		if (runtimes->states[i])
			news = drivers[i]->news(runtimes->states[i]);
	}
	return news;
}

/* The slot of the runtime whose frame it is; SF_N_RUNTIMES: of none that is attached to. */
static uint32_t slot_of(const struct sf_runtimes *runtimes, const struct sf_frame *frame)
{
	const uint32_t slot = frame->runtime - 1u;

	return slot < SF_N_RUNTIMES && runtimes->attached[slot] ? slot : SF_N_RUNTIMES;
}

uint32_t sf_runtimes_place(struct sf_runtimes *runtimes, const struct sf_frame *frame)
{
	const uint32_t slot = slot_of(runtimes, frame);

	return slot < SF_N_RUNTIMES ? drivers[slot]->place(runtimes->states[slot], frame) : 0;
}

size_t sf_runtimes_functions(struct sf_runtimes *runtimes, const struct sf_frame *frame,
			     uint32_t place, const struct sf_location **ret)
{
	const uint32_t slot = slot_of(runtimes, frame);

	return slot < SF_N_RUNTIMES && place ?
		drivers[slot]->functions(runtimes->states[slot], place, ret) : 0;
}

static void expect_of(struct sf_runtimes *runtimes, uint32_t slot, const struct sf_prefetch *ahead,
		      const struct sf_frame *const *frames, size_t n)
{
	const struct sf_frame *own[MAX_EXPECTED];
	size_t n_own = 0;

	for (size_t i = 0; i < n && n_own < MAX_EXPECTED; i++) {
		if (frames[i]->runtime == slot + 1)
			own[n_own++] = frames[i];
	}
	if (n_own)
		drivers[slot]->expect(runtimes->states[slot], ahead, own, n_own);
}

void sf_runtimes_expect(struct sf_runtimes *runtimes, const struct sf_prefetch *ahead,
			const struct sf_frame *const *frames, size_t n)
{
	for (uint32_t i = 0; i < SF_N_RUNTIMES; i++) {
		if (runtimes->attached[i] && drivers[i]->expect)
			expect_of(runtimes, i, ahead, frames, n);
	}
}

uint64_t sf_runtimes_thread(struct sf_runtimes *runtimes, uint32_t slot, int32_t tid)
{
	return slot < SF_N_RUNTIMES && runtimes->attached[slot] && drivers[slot]->thread ?
		drivers[slot]->thread(runtimes->states[slot], tid) : 0;
}

bool sf_runtimes_thread_name(struct sf_runtimes *runtimes, int32_t tid, char *ret, size_t size)
{
	bool named = false;

	for (uint32_t i = 0; i < SF_N_RUNTIMES && !named; i++) {
		if (runtimes->attached[i] && drivers[i]->thread_name)
			named = drivers[i]->thread_name(runtimes->states[i], tid, ret, size);
	}
	return named;
}

void sf_runtimes_examine(struct sf_runtimes *runtimes, struct sf_images *images,
			 const struct sf_runtime_findings *findings)
{
	for (uint32_t i = 0; i < SF_N_RUNTIMES; i++) {
		if (runtimes->states[i] && drivers[i]->examine)
			drivers[i]->examine(runtimes->states[i], images, findings);
	}
}

const struct sf_runtime_driver *sf_runtimes_loader(int32_t pid)
{
	for (uint32_t i = 0; i < SF_N_RUNTIMES; i++) {
		if (drivers[i]->load && drivers[i]->is_in(pid))
			return drivers[i];
	}
	return NULL;
}
