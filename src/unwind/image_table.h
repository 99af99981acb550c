/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The unwind table of an image: what its loader (target/images.h) makes of the file behind its
 * descriptor.
 */
#ifndef SF_UNWIND_IMAGE_TABLE_H
#define SF_UNWIND_IMAGE_TABLE_H

#include "target/image.h"

/*
 * From the cache, else built, and kept there: fills table, table_block and table_size, or else
 * note. The image's descriptor is open. Any thread, for different images. Unload takes an image
 * without a table, too.
 */
void sf_image_load_table(struct sf_image *image);
void sf_image_unload_table(struct sf_image *image);

#endif
