/* SPDX-License-Identifier: Apache-2.0 */
/* An image's addresses in the file, whether the file still has the content of the image, and its release. */
#include "target/image.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

bool sf_image_address(const struct sf_image *image, uint64_t offset, uint64_t *ret)
{
	return sf_elf_code_address(image->code, image->n_code, offset, ret);
}

void sf_image_note_times(struct sf_image *image)
{
	struct stat status;

	if (fstat(image->fd, &status) != 0)
		return;
	image->changed_ns = status.st_ctim.tv_sec * 1000000000LL + status.st_ctim.tv_nsec;
	image->written_ns = status.st_mtim.tv_sec * 1000000000LL + status.st_mtim.tv_nsec;
}

/*
 * A build id tells a file that was written to from one that was only renamed, or given other rights. A file without code, such
 * as the dump of a JIT compiler, may grow all the time.
 */
static bool has_other_content(const struct sf_image *image, int64_t written_ns)
{
	uint8_t build_id[SF_ELF_MAX_BUILD_ID];
	size_t size;

	if (!image->build_id_size)
		return image->n_code && image->written_ns != written_ns;
	sf_elf_build_id(image->fd, build_id, &size);
	return size != image->build_id_size || memcmp(build_id, image->build_id, size) != 0;
}

bool sf_image_is_rewritten(struct sf_image *image)
{
	const int64_t changed_ns = image->changed_ns, written_ns = image->written_ns;

	if (image->is_rewritten || image->fd < 0 || image->from_memory || image->is_perf_map || image->is_kernel)
		return image->is_rewritten;
	sf_image_note_times(image);
	if (image->changed_ns == changed_ns)
		return false;
	image->is_rewritten = has_other_content(image, written_ns);
	if (image->is_rewritten && !image->note[0])
		snprintf(image->note, sizeof(image->note), "the file was written to after it had been mapped: what has no name by then has none");
	return image->is_rewritten;
}

void sf_image_close(struct sf_image *image)
{
	if (image->fd >= 0)
		close(image->fd);
	image->fd = -1;
}
