/* SPDX-License-Identifier: Apache-2.0 */
#include "session/java_check.h"

#include <stdio.h>

#include "elf/file.h"
#include "session/java.h"
#include "session/loader.h"

/* GraalVM's native-image puts the objects that exist from the start into a section of this name. */
#define NATIVE_IMAGE_HEAP ".svm_heap"

static bool is_native_image(const struct sf_image *image)
{
	GElf_Shdr header;
	struct sf_elf file;
	bool found;

	if (image->fd < 0 || !sf_elf_open(image->fd, &file, NULL))
		return false;
	found = sf_elf_find_section(file.elf, NATIVE_IMAGE_HEAP, &header) != NULL;
	sf_elf_close(&file);
	return found;
}

static bool has_native_image(struct sf_images *images)
{
	for (uint32_t i = 1; i <= sf_images_count(images); i++) {
		if (is_native_image(sf_images_get(images, i)))
			return true;
	}
	return false;
}

static void judge(const struct sf_java *java, struct sf_images *images, struct sf_java_check *ret)
{
	const struct sf_hotspot *hotspot;

	snprintf(ret->note, sizeof(ret->note), "%s", java->finder.note);
	if (java->jvm) {
		hotspot = sf_jvm_hotspot(java->jvm);
		ret->kind = SF_JAVA_HOTSPOT;
		ret->version = hotspot->version;
		sf_jvm_facts(hotspot, sf_jvm_memory(java->jvm), &ret->facts);
	} else if (java->finder.refused) {
		ret->kind = SF_JAVA_REFUSED;
	} else if (java->finder.image) {
		ret->kind = SF_JAVA_STARTING;
	} else if (has_native_image(images)) {
		ret->kind = SF_JAVA_NATIVE_IMAGE;
	}
}

bool sf_java_check(int32_t pid, struct sf_java_check *ret, struct sf_error *err)
{
	struct sf_images *images = sf_images_create(&sf_session_loader);
	struct sf_process process;
	struct sf_java java = { 0 };
	bool fine;

	*ret = (struct sf_java_check){ 0 };
	if (!images)
		return sf_fail_memory(err);
	sf_process_init(&process, pid);
	fine = sf_process_refresh(&process, images, err);
	if (fine) {
		sf_java_look(&java, &process, images);
		judge(&java, images, ret);
	}
	sf_java_deinit(&java);
	sf_process_deinit(&process);
	sf_images_destroy(images);
	return fine;
}
