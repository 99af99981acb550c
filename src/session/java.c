/* SPDX-License-Identifier: Apache-2.0 */
#include "session/java.h"

#include <stdio.h>
#include <string.h>

#include "os/clock.h"
#include "os/task.h"

/*
 * A virtual machine that is just starting is tried again, often at first: its library is mapped before
 * its tables are filled in, and these before it makes code.
 */
#define TRY_PAUSE_NS 20000000
#define MAX_DOUBLINGS 6
#define EASY_TRIES 50

void sf_java_deinit(struct sf_java *java)
{
	sf_jvm_destroy(java->jvm);
	sf_vec_deinit(&java->recorded);
	*java = (struct sf_java){ 0 };
}

static bool is_called(const struct sf_image *image, const char *name)
{
	const char *slash = strrchr(image->path, '/');

	return slash && strcmp(slash + 1, name) == 0;
}

static void refuse(struct sf_java *java, const char *why)
{
	java->refused = true;
	snprintf(java->note, sizeof(java->note), "%s", why);
}

static void find_library(struct sf_java *java, const struct sf_process *process,
			 struct sf_images *images)
{
	uint32_t last = 0;

	for (size_t i = 0; i < process->map->n_regions && !java->image; i++) {
		const struct sf_region *region = &process->map->regions[i];
		const struct sf_image *image;

		if (!region->image || region->image == last)
			continue;
		last = region->image;
		image = sf_images_get(images, region->image);
		if (strstr(image->path, "/libj9vm"))
			refuse(java, "no Java frames: its Java virtual machine is OpenJ9, which "
				     "does not tell how its stacks are laid out; only HotSpot does");
		if (!is_called(image, "libjvm.so"))
			continue;
		java->image = region->image;
		java->bias = region->bias;
	}
}

static void try_to_attach(struct sf_java *java, struct sf_process *process,
			  struct sf_images *images)
{
	const struct sf_image *image = sf_images_get(images, java->image);
	struct sf_error err = { 0 };

	java->jvm = sf_jvm_attach(sf_process_live_id(process->pid), image->fd, java->bias, &err);
	if (!java->jvm) {
		snprintf(java->note, sizeof(java->note), "no Java frames: %s", err.text);
		java->refused = err.code != SF_E_GONE;
		return;
	}
	java->note[0] = 0;
	if (*sf_jvm_note(java->jvm))
		snprintf(java->note, sizeof(java->note), "Java is shown %s",
			 sf_jvm_note(java->jvm));
	process->hotspot = sf_jvm_hotspot(java->jvm);
	process->map->hotspot = process->hotspot;
}

static uint64_t pause_ns(unsigned tries)
{
	unsigned doublings = tries > EASY_TRIES ? tries - EASY_TRIES : 0;

	return (uint64_t)TRY_PAUSE_NS << (doublings < MAX_DOUBLINGS ? doublings : MAX_DOUBLINGS);
}

void sf_java_look(struct sf_java *java, struct sf_process *process, struct sf_images *images)
{
	uint64_t now_ns;

	if (java->jvm || java->refused || !process->map)
		return;
	if (!java->image && java->looked_ns != process->refreshed_ns) {
		java->looked_ns = process->refreshed_ns;
		find_library(java, process, images);
	}
	if (!java->image || java->refused)
		return;
	now_ns = sf_now_ns();
	if (java->tried_ns && now_ns - java->tried_ns < pause_ns(java->tries))
		return;
	java->tries++;
	try_to_attach(java, process, images);
	java->tried_ns = sf_now_ns();
}

/* In a container the virtual machine knows its threads by other ids. */
static int32_t inner_id(struct sf_java *java, int32_t pid, int32_t tid)
{
	if (!java->has_inner_ids) {
		java->has_inner_ids = true;
		java->inner_ids = sf_task_inner_id(pid, pid) != pid;
	}
	return java->inner_ids ? sf_task_inner_id(pid, tid) : tid;
}

uint64_t sf_java_thread(struct sf_java *java, int32_t pid, int32_t tid)
{
	return sf_jvm_thread(java->jvm, inner_id(java, pid, tid));
}

bool sf_java_name(struct sf_java *java, int32_t pid, int32_t tid, char *ret, size_t size)
{
	return sf_jvm_thread_name(java->jvm, inner_id(java, pid, tid), ret, size);
}
