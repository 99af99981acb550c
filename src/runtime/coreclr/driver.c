/* SPDX-License-Identifier: Apache-2.0 */
/* CoreCLR's functions for the rest of stillframe: its side of runtime/runtime.h. */
#include "runtime/coreclr/coreclr.h"

#include <signal.h>

#include "frozen/runtime_list.h"
#include "runtime/coreclr/events.h"
#include "runtime/coreclr/load.h"

extern const struct sf_runtime_driver sf_coreclr_driver;

static void *create(void)
{
	return sf_clr_create(SF_RUNTIME_CORECLR);
}

static void destroy(void *state)
{
	sf_clr_destroy(state);
}

static bool look(void *state, const struct sf_process *process, struct sf_images *images)
{
	return sf_clr_look(state, process, images);
}

static const struct sf_runtime *attach(void *state, const struct sf_process *process,
				       struct sf_images *images, const struct sf_reader *memory)
{
	struct sf_coreclr *object = sf_clr_attach(state, process, images, memory);

	return object ? &object->runtime : NULL;
}

static const struct sf_runtime *refresh(void *state, const struct sf_process *process,
					const struct sf_runtime *present, bool inside)
{
	struct sf_coreclr *object =
		sf_clr_refresh(state, process, (const struct sf_coreclr *)present);

	(void)inside;
	return object ? &object->runtime : present;
}

static void detach(void *state, const struct sf_runtime *object)
{
	(void)state;
	sf_clr_object_destroy((struct sf_coreclr *)(uintptr_t)object);
}

static const char *news(void *state)
{
	return sf_clr_news(state);
}

static uint32_t place(void *state, const struct sf_frame *frame)
{
	return sf_clr_place(state, frame);
}

static uint8_t kind(void *state, uint32_t number)
{
	return sf_clr_kind(state, number);
}

static size_t functions(void *state, uint32_t number, const struct sf_location **ret)
{
	return sf_clr_functions(state, number, ret);
}

static uint64_t thread(void *state, int32_t tid)
{
	return sf_clr_thread(state, tid);
}

static enum sf_naming thread_name(void *state, int32_t tid, char *ret, size_t size)
{
	return sf_clr_name_thread(state, tid, ret, size);
}

static bool lock_wait(void *state, int32_t tid, const struct sf_trace *trace, bool timed, struct sf_lock_wait *ret)
{
	return sf_clr_find_lock_wait(state, tid, trace, timed, ret);
}

static const char *purpose(void *state, const struct sf_trace *trace)
{
	return sf_clr_find_purpose(state, trace);
}

static uint32_t awaiters(void *state, const struct sf_still *still, const struct sf_trace *trace, struct sf_frame *ret,
			 uint32_t capacity, uint32_t *at_ret)
{
	return sf_clr_find_awaiters(state, still, trace, ret, capacity, at_ret);
}

static void examine(void *state, struct sf_images *images, const struct sf_runtime_findings *findings)
{
	(void)images;
	sf_clr_examine(state, findings);
}

const struct sf_runtime_driver sf_coreclr_driver = {
	.ops = &sf_coreclr_ops,
	.create = create,
	.destroy = destroy,
	.look = look,
	.attach = attach,
	.tries = { .pause_ns = 20000000, .n_easy = SF_CLR_EASY_TRIES, .max_doublings = 6 },
	.refresh = refresh,
	.detach = detach,
	.news = news,
	.place = place,
	.kind = kind,
	.functions = functions,
	.thread = thread,
	.thread_name = thread_name,
	.lock_wait = lock_wait,
	.purpose = purpose,
	.awaiters = awaiters,
	.examine = examine,
	/* The handler throws NullReferenceException on the thread's own stack (CoreCLR: pal/src/exception/signal.cpp). */
	.undisturbed_signal = SIGSEGV,
	.event = sf_clr_event_shown,
	.is_in = sf_clr_is_in,
	.is_loadable = sf_clr_loadable,
	.load = sf_clr_load,
	.inside = SF_CORECLR_INSIDE,
	.inside_text = SF_CORECLR_RUNTIME,
};
