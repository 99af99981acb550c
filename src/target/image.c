/* SPDX-License-Identifier: Apache-2.0 */
/* An image's addresses in the file, and its release. */
#include "target/image.h"

#include <unistd.h>

bool sf_image_address(const struct sf_image *image, uint64_t offset, uint64_t *ret)
{
	struct sf_elf_code code[256];

	if (image->fd >= 0)
		return sf_elf_code_address(code, sf_elf_code(image->fd, code, 256), offset, ret);
	return sf_elf_code_address(image->code, image->n_code, offset, ret);
}

void sf_image_close(struct sf_image *image)
{
	int fd = image->fd;

	if (fd < 0)
		return;
	image->n_code = sf_elf_code(fd, image->code, SF_MAX_IMAGE_CODE);
	image->fd = -1;
	close(fd);
}
