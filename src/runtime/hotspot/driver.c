/* SPDX-License-Identifier: Apache-2.0 */
/* HotSpot's functions for the rest of stillframe: its side of runtime/runtime.h. */
#include <stdlib.h>

#include "runtime/hotspot/examine.h"
#include "runtime/hotspot/finder.h"
#include "runtime/hotspot/load.h"
#include "runtime/runtime.h"

extern const struct sf_runtime_driver sf_hotspot_driver;

static void *create(void)
{
	return calloc(1, sizeof(struct sf_jvm_finder));
}

static void destroy(void *state)
{
	sf_jvm_finder_deinit(state);
	free(state);
}

static struct sf_jvm *jvm_of(void *state)
{
	const struct sf_jvm_finder *finder = state;

	return finder->jvm;
}

static bool look(void *state, const struct sf_process *process, struct sf_images *images)
{
	return sf_jvm_finder_look(state, process, images);
}

static const struct sf_runtime *attach(void *state, const struct sf_process *process,
				       struct sf_images *images, const struct sf_reader *memory)
{
	return sf_jvm_finder_attach(state, process, images, memory) ?
		&sf_jvm_hotspot(jvm_of(state))->runtime : NULL;
}

/* Code heaps keep their place, and they are never unmapped. So there is one object for the life of the process. */
static const struct sf_runtime *refresh(void *state, const struct sf_process *process,
					const struct sf_runtime *present, bool inside)
{
	(void)process;
	if (inside)
		sf_jvm_lend_code(jvm_of(state));
	return present;
}

static const char *news(void *state)
{
	return sf_jvm_finder_news(state);
}

static uint32_t place(void *state, const struct sf_frame *frame)
{
	return sf_jvm_place(jvm_of(state), frame);
}

static size_t functions(void *state, uint32_t number, const struct sf_location **ret)
{
	return sf_jvm_functions(jvm_of(state), number, ret);
}

static void expect(void *state, const struct sf_prefetch *ahead, const struct sf_frame *const *frames,
		   size_t n)
{
	sf_jvm_expect(jvm_of(state), ahead, frames, n);
}

static uint64_t thread(void *state, int32_t tid)
{
	return sf_jvm_thread(jvm_of(state), tid);
}

static bool thread_name(void *state, int32_t tid, char *ret, size_t size)
{
	return sf_jvm_thread_name(jvm_of(state), tid, ret, size);
}

static void examine(void *state, struct sf_images *images,
		    const struct sf_runtime_findings *findings)
{
	sf_jvm_examine(state, images, findings);
}

const struct sf_runtime_driver sf_hotspot_driver = {
	.ops = &sf_hotspot_ops,
	.create = create,
	.destroy = destroy,
	.look = look,
	.attach = attach,
	.refresh = refresh,
	.news = news,
	.place = place,
	.functions = functions,
	.expect = expect,
	.thread = thread,
	.thread_name = thread_name,
	.examine = examine,
	.is_in = sf_hotspot_is_in,
	.is_loadable = sf_hotspot_loadable,
	.load = sf_hotspot_load,
};
