/* SPDX-License-Identifier: Apache-2.0 */
/* Makes the unwind table of an image from the file behind its descriptor. */
#include "unwind/image_table.h"

#include <stdio.h>
#include <string.h>

#include "unwind/unwind.h"

void sf_image_load_table(struct sf_image *image)
{
	struct sf_error err = { 0 };
	/* A copy of memory has gaps, other ones each time: its table is of no use to others. */
	const bool keep = !image->from_memory;

	if (sf_unwind_open(image->fd, keep, image->work, &image->table, &image->table_block,
			   &image->table_size, &err))
		return;
	memset(&image->table, 0, sizeof(image->table));
	if (!image->note[0])
		snprintf(image->note, sizeof(image->note), "no unwind table: %.150s", err.text);
}

void sf_image_unload_table(struct sf_image *image)
{
	if (image->table_block)
		sf_unwind_close(image->table_block, image->table_size);
}
