/* SPDX-License-Identifier: Apache-2.0 */
/* An image's addresses in the file, and its release. */
#include "target/image.h"

#include <unistd.h>

bool sf_image_address(const struct sf_image *image, uint64_t offset, uint64_t *ret)
{
	return sf_elf_code_address(image->code, image->n_code, offset, ret);
}

void sf_image_close(struct sf_image *image)
{
	if (image->fd >= 0)
		close(image->fd);
	image->fd = -1;
}
