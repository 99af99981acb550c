/* SPDX-License-Identifier: Apache-2.0 */
/* The runtimes of one process: each function goes to the drivers in the list. Replaced objects wait here for the last walk. */
#include "runtime/runtimes.h"

#include <string.h>

#include "frozen/raw.h"
#include "os/clock.h"

_Static_assert(SF_N_RUNTIMES <= SF_MAX_RUNTIMES, "a process may have all of them");

#define MAX_EXPECTED 128
#define MAX_READINGS 4u                /* of what a collector may move meanwhile */
#define REFRESH_NS 100000000u        /* between two refreshes, and at least ... */
#define REFRESH_SHARE 100            /* ... so many times what the last one cost */
#define UNKNOWN_CODE_NS 2000000u     /* the same where a walk met unknown code */
#define UNKNOWN_CODE_SHARE 20

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

static void detach(struct sf_runtimes *runtimes, uint32_t slot, const struct sf_runtime *object)
{
	if (object && drivers[slot]->detach)
		drivers[slot]->detach(runtimes->states[slot], object);
}

void sf_runtimes_deinit(struct sf_runtimes *runtimes)
{
	sf_runtimes_release(runtimes, NULL, NULL);
	for (uint32_t i = 0; i < SF_N_RUNTIMES; i++) {
		detach(runtimes, i, runtimes->attached[i]);
		if (runtimes->states[i])
			drivers[i]->destroy(runtimes->states[i]);
	}
	sf_vec_deinit(&runtimes->replaced);
	*runtimes = (struct sf_runtimes){ 0 };
}

static void complete(struct sf_runtimes *runtimes, uint32_t slot, const struct sf_process *process,
		     struct sf_images *images, const struct sf_reader *memory)
{
	if (runtimes->completes && drivers[slot]->complete && !runtimes->completed[slot])
		runtimes->completed[slot] =
			drivers[slot]->complete(runtimes->states[slot], process, images, memory);
}

static uint64_t pause_ns(const struct sf_runtime_tries *tries, unsigned n)
{
	const unsigned doublings = n > tries->n_easy ? n - tries->n_easy : 0;

	return tries->pause_ns << (doublings < tries->max_doublings ? doublings : tries->max_doublings);
}

/* Each sample asks. The driver is asked when there may be another answer. */
static bool is_found(struct sf_runtimes *runtimes, uint32_t slot, const struct sf_process *process, struct sf_images *images)
{
	struct sf_runtime_search *search = &runtimes->searches[slot];

	if (search->looked && search->map_ns == process->refreshed_ns)
		return search->found;
	if (!runtimes->states[slot])
		runtimes->states[slot] = drivers[slot]->create();
	if (!runtimes->states[slot])
		return false;
	search->looked = true;
	search->map_ns = process->refreshed_ns;
	search->found = drivers[slot]->look(runtimes->states[slot], process, images);
	runtimes->may_have_news = true;
	return search->found;
}

static bool is_to_try(struct sf_runtimes *runtimes, uint32_t slot, const struct sf_process *process, struct sf_images *images)
{
	const struct sf_runtime_search *search = &runtimes->searches[slot];

	return !runtimes->attached[slot] && process->map && is_found(runtimes, slot, process, images) &&
	       (!search->tried_ns || sf_now_ns() - search->tried_ns >= pause_ns(&drivers[slot]->tries, search->n_tries));
}

static bool attach(struct sf_runtimes *runtimes, uint32_t slot, struct sf_process *process,
		   struct sf_images *images, sf_runtimes_prepare_fn *prepare, void *arg)
{
	struct sf_runtime_search *search = &runtimes->searches[slot];
	struct sf_reader memory;

	if (!is_to_try(runtimes, slot, process, images) || !prepare(arg, slot, &memory))
		return false;
	runtimes->attached[slot] =
		drivers[slot]->attach(runtimes->states[slot], process, images, &memory);
	search->looked = false;
	search->n_tries++;
	search->tried_ns = sf_now_ns();
	runtimes->may_have_news = true;
	complete(runtimes, slot, process, images, &memory);
	if (!runtimes->attached[slot])
		return false;
	sf_process_replace_runtime(process, NULL, runtimes->attached[slot]);
	return true;
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
		any |= runtimes->attached[i] != NULL;
	return any;
}

/* True: the runtime has another object now, or none. */
static bool refresh(struct sf_runtimes *runtimes, uint32_t slot, struct sf_process *process, bool inside)
{
	const struct sf_runtime *old = runtimes->attached[slot], *now;

	if (!old || !drivers[slot]->refresh ||
	    !sf_vec_reserve(&runtimes->replaced, runtimes->replaced.n + 1))
		return false;
	now = drivers[slot]->refresh(runtimes->states[slot], process, old, inside);
	if (now == old)
		return false;
	sf_vec_push(&runtimes->replaced, (struct sf_replaced_runtime){ old, slot });
	runtimes->attached[slot] = now;
	runtimes->searches[slot] = (struct sf_runtime_search){ 0 };
	sf_process_replace_runtime(process, old, now);
	return true;
}

/* Code in a new map is walked by the wrong rules if its runtime does not list it yet. */
static bool is_refresh_due(const struct sf_runtimes *runtimes, const struct sf_process *process,
			   bool unknown_code)
{
	const uint64_t least_ns = unknown_code ? UNKNOWN_CODE_NS : REFRESH_NS;
	const uint64_t pause_ns = runtimes->refresh_cost_ns * (unknown_code ? UNKNOWN_CODE_SHARE : REFRESH_SHARE);

	return sf_runtimes_any(runtimes) &&
	       (process->refreshed_ns > runtimes->refreshed_ns ||
		sf_now_ns() - runtimes->refreshed_ns >= (pause_ns > least_ns ? pause_ns : least_ns));
}

bool sf_runtimes_refresh(struct sf_runtimes *runtimes, struct sf_process *process, bool inside,
			 bool unknown_code)
{
	uint64_t start_ns;
	bool any = false;

	if (!is_refresh_due(runtimes, process, unknown_code))
		return false;
	start_ns = sf_raw_thread_cpu_ns();
	for (uint32_t i = 0; i < SF_N_RUNTIMES; i++)
		any |= refresh(runtimes, i, process, inside);
	runtimes->refreshed_ns = sf_now_ns();
	runtimes->refresh_cost_ns = sf_raw_thread_cpu_ns() - start_ns;
	return any;
}

void sf_runtimes_release(struct sf_runtimes *runtimes, sf_runtimes_is_used_fn *is_used, void *arg)
{
	size_t n = 0;

	for (size_t i = 0; i < runtimes->replaced.n; i++) {
		const struct sf_replaced_runtime replaced = runtimes->replaced.items[i];

		if (is_used && is_used(arg, replaced.object))
			runtimes->replaced.items[n++] = replaced;
		else
			detach(runtimes, replaced.slot, replaced.object);
	}
	runtimes->replaced.n = n;
}

const char *sf_runtimes_news(struct sf_runtimes *runtimes)
{
	const char *news = NULL;

	for (uint32_t i = 0; i < SF_N_RUNTIMES && runtimes->may_have_news && !news; i++) {
		if (runtimes->states[i])
			news = drivers[i]->news(runtimes->states[i]);
	}
	runtimes->may_have_news = news != NULL;
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

uint8_t sf_runtimes_kind(struct sf_runtimes *runtimes, const struct sf_frame *frame, uint32_t place)
{
	const uint32_t slot = slot_of(runtimes, frame);

	return slot < SF_N_RUNTIMES && place && drivers[slot]->kind ?
		drivers[slot]->kind(runtimes->states[slot], place) : frame->kind;
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

static enum sf_naming read_name(struct sf_runtimes *runtimes, int32_t tid, char *ret, size_t size)
{
	enum sf_naming named = SF_UNNAMED;

	for (uint32_t i = 0; i < SF_N_RUNTIMES && named == SF_UNNAMED; i++) {
		if (runtimes->attached[i] && drivers[i]->thread_name)
			named = drivers[i]->thread_name(runtimes->states[i], tid, ret, size);
	}
	return named;
}

enum sf_naming sf_runtimes_thread_name(struct sf_runtimes *runtimes, int32_t tid, void (*renew)(void *arg), void *arg,
				       char ret[SF_RUNTIME_NAME])
{
	char first[SF_RUNTIME_NAME];
	enum sf_naming named;

	renew(arg);
	named = read_name(runtimes, tid, first, sizeof(first));
	if (named != SF_NAMED)
		return named;
	renew(arg);
	named = read_name(runtimes, tid, ret, SF_RUNTIME_NAME);
	return named == SF_NAMED && strcmp(first, ret) == 0 ? SF_NAMED : SF_NAMED_LATER;
}

static bool read_lock_wait(struct sf_runtimes *runtimes, int32_t tid, const struct sf_trace *trace, bool timed,
			   struct sf_lock_wait *ret)
{
	for (uint32_t i = 0; i < SF_N_RUNTIMES; i++) {
		if (runtimes->attached[i] && drivers[i]->lock_wait &&
		    drivers[i]->lock_wait(runtimes->states[i], tid, trace, timed, ret))
			return true;
	}
	return false;
}

bool sf_runtimes_lock_wait(struct sf_runtimes *runtimes, int32_t tid, const struct sf_trace *trace, bool timed,
			   void (*renew)(void *arg), void *arg, struct sf_lock_wait *ret)
{
	struct sf_lock_wait first;

	renew(arg);
	if (!read_lock_wait(runtimes, tid, trace, timed, &first))
		return false;
	renew(arg);
	return read_lock_wait(runtimes, tid, trace, timed, ret) && ret->kind == first.kind && ret->address == first.address &&
	       ret->owner == first.owner && strcmp(ret->of, first.of) == 0;
}

const char *sf_runtimes_purpose(struct sf_runtimes *runtimes, const struct sf_trace *trace)
{
	const char *purpose = NULL;

	for (uint32_t i = 0; i < SF_N_RUNTIMES && !purpose; i++) {
		if (runtimes->attached[i] && drivers[i]->purpose)
			purpose = drivers[i]->purpose(runtimes->states[i], trace);
	}
	return purpose;
}

/* Until two readings in a row are the same. */
static uint32_t awaiters_of(struct sf_runtimes *runtimes, uint32_t slot, const struct sf_still *still, const struct sf_trace *trace,
			    void (*renew)(void *arg), void *arg, struct sf_frame *ret, uint32_t *at_ret)
{
	struct sf_frame before[SF_MAX_AWAITERS];
	uint32_t n_before = 0;

	if (!runtimes->attached[slot] || !drivers[slot]->awaiters)
		return 0;
	for (unsigned i = 0; i < MAX_READINGS; i++) {
		const uint32_t n = drivers[slot]->awaiters(runtimes->states[slot], still, trace, ret, SF_MAX_AWAITERS, at_ret);

		if (!n || (n == n_before && memcmp(before, ret, n * sizeof(*ret)) == 0))
			return n;
		memcpy(before, ret, n * sizeof(*ret));
		n_before = n;
		renew(arg);
	}
	return 0;
}

uint32_t sf_runtimes_awaiters(struct sf_runtimes *runtimes, const struct sf_still *still, const struct sf_trace *trace,
			      void (*renew)(void *arg), void *arg, struct sf_frame ret[SF_MAX_AWAITERS], uint32_t *at_ret)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < SF_N_RUNTIMES && !n; i++)
		n = awaiters_of(runtimes, i, still, trace, renew, arg, ret, at_ret);
	return n;
}

void sf_runtimes_examine(struct sf_runtimes *runtimes, struct sf_images *images,
			 const struct sf_runtime_findings *findings)
{
	for (uint32_t i = 0; i < SF_N_RUNTIMES; i++) {
		if (runtimes->states[i] && drivers[i]->examine)
			drivers[i]->examine(runtimes->states[i], images, findings);
	}
}

const struct sf_runtime_driver *sf_runtimes_inside(const char *word)
{
	for (uint32_t i = 0; i < SF_N_RUNTIMES; i++) {
		if (drivers[i]->inside && strcmp(drivers[i]->inside, word) == 0)
			return drivers[i];
	}
	return NULL;
}

const struct sf_runtime_driver *sf_runtimes_loader(int32_t pid)
{
	for (uint32_t i = 0; i < SF_N_RUNTIMES; i++) {
		if (drivers[i]->load && drivers[i]->is_in(pid))
			return drivers[i];
	}
	return NULL;
}
