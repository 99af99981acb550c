/* SPDX-License-Identifier: Apache-2.0 */
/*
 * HotSpot's driver, its side of runtime/runtime.h: finds the Java virtual machine of a process among its files, and
 * attaches when it has started. jvm.c describes frames.
 */
#include "runtime/hotspot/finder.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "os/task.h"
#include "runtime/hotspot/examine.h"
#include "runtime/hotspot/load.h"

extern const struct sf_runtime_driver sf_hotspot_driver;

static void *create(void)
{
	return calloc(1, sizeof(struct sf_jvm_finder));
}

static void destroy(void *state)
{
	struct sf_jvm_finder *finder = state;

	sf_java_debug_info_end(&finder->debug_info);
	sf_jvm_destroy(finder->jvm);
	free(state);
}

static bool is_called(const struct sf_image *image, const char *name)
{
	const char *slash = strrchr(image->path, '/');

	return slash && strcmp(slash + 1, name) == 0;
}

static void refuse(struct sf_jvm_finder *finder, const char *why)
{
	finder->refused = true;
	snprintf(finder->note, sizeof(finder->note), "%s", why);
}

static void find_library(struct sf_jvm_finder *finder, const struct sf_process *process,
			 struct sf_images *images)
{
	uint32_t last = 0;

	for (size_t i = 0; i < process->map->n_regions && !finder->image; i++) {
		const struct sf_region *region = &process->map->regions[i];
		const struct sf_image *image;

		if (!region->image || region->image == last)
			continue;
		last = region->image;
		image = sf_images_get(images, region->image);
		if (strstr(image->path, "/libj9vm"))
			refuse(finder, "no Java frames: its Java virtual machine is OpenJ9, which "
				       "does not tell how its stacks are laid out; only HotSpot does");
		if (!is_called(image, "libjvm.so"))
			continue;
		finder->image = region->image;
		finder->bias = region->bias;
	}
}

/* Inside a program files are open only while they are looked at. */
static int open_library(int32_t pid, const struct sf_image *image)
{
	const struct sf_mapping mapping = { .path = image->path, .inode = image->inode,
					    .device = image->device };

	return image->fd >= 0 ? image->fd : sf_process_open_mapping(pid, &mapping);
}

static void close_library(const struct sf_image *image, int fd)
{
	if (fd >= 0 && fd != image->fd)
		close(fd);
}

static struct sf_jvm *attach_to(const struct sf_jvm_finder *finder, int32_t pid,
				const struct sf_image *image, const struct sf_reader *memory,
				struct sf_error *err)
{
	const int fd = open_library(pid, image);
	struct sf_jvm *jvm = sf_jvm_attach(memory, fd, finder->bias, err);

	close_library(image, fd);
	return jvm;
}

static bool is_thread(void *arg, int32_t tid)
{
	const int32_t *pid = arg;
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/task/%d", *pid, tid);
	return access(path, F_OK) == 0;
}

static bool try_to_attach(struct sf_jvm_finder *finder, const struct sf_process *process,
			  struct sf_images *images, const struct sf_reader *memory)
{
	const struct sf_image *image = sf_images_get(images, finder->image);
	struct sf_error err = { 0 };
	int32_t pid = process->pid;

	finder->jvm = attach_to(finder, process->pid, image, memory, &err);
	if (!finder->jvm) {
		snprintf(finder->note, sizeof(finder->note), "no Java frames: %s", err.text);
		finder->refused = err.code != SF_E_GONE;
		return false;
	}
	/* A JVM in another pid namespace has other ids for its threads. */
	if (sf_task_inner_id(pid, pid) == pid)
		sf_jvm_try_threads(finder->jvm, is_thread, &pid);
	finder->note[0] = 0;
	if (*sf_jvm_note(finder->jvm))
		snprintf(finder->note, sizeof(finder->note), "Java is shown %s",
			 sf_jvm_note(finder->jvm));
	return true;
}

static bool look(void *state, const struct sf_process *process, struct sf_images *images)
{
	struct sf_jvm_finder *finder = state;

	if (!finder->image && !finder->refused)
		find_library(finder, process, images);
	return finder->image && !finder->refused;
}

static const struct sf_runtime *attach(void *state, const struct sf_process *process,
				       struct sf_images *images, const struct sf_reader *memory)
{
	struct sf_jvm_finder *finder = state;

	return try_to_attach(finder, process, images, memory) ? &sf_jvm_hotspot(finder->jvm)->runtime : NULL;
}

static bool complete(void *state, const struct sf_process *process, struct sf_images *images,
		     const struct sf_reader *memory)
{
	struct sf_jvm_finder *finder = state;
	const struct sf_image *image = sf_images_get(images, finder->image);
	const int fd = open_library(process->pid, image);
	const bool done = sf_java_debug_info_begin(&finder->debug_info, process->pid, memory, fd, finder->bias);

	close_library(image, fd);
	return done;
}

static const char *news(void *state)
{
	struct sf_jvm_finder *finder = state;

	if (finder->noted || !finder->note[0] || !(finder->jvm || finder->refused))
		return NULL;
	finder->noted = true;
	return finder->note;
}

/* --- what the virtual machine says, once it is attached to --- */

static struct sf_jvm *jvm_of(void *state)
{
	const struct sf_jvm_finder *finder = state;

	return finder->jvm;
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

static enum sf_naming thread_name(void *state, int32_t tid, char *ret, size_t size)
{
	return sf_jvm_thread_name(jvm_of(state), tid, ret, size) ? SF_NAMED : SF_UNNAMED;
}

static bool lock_wait(void *state, int32_t tid, const struct sf_trace *trace, bool timed, struct sf_lock_wait *ret)
{
	(void)trace;
	return sf_jvm_lock_wait(jvm_of(state), tid, timed, ret);
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
	/* The library is mapped before its tables are filled in, and these before the virtual machine makes code. */
	.tries = { .pause_ns = 5000000, .n_easy = 200, .max_doublings = 8 },
	.complete = complete,
	.refresh = refresh,
	.news = news,
	.place = place,
	.functions = functions,
	.expect = expect,
	.thread = thread,
	.thread_name = thread_name,
	.lock_wait = lock_wait,
	.examine = examine,
	.is_in = sf_hotspot_is_in,
	.is_loadable = sf_hotspot_loadable,
	.load = sf_hotspot_load,
};
