/* SPDX-License-Identifier: Apache-2.0 */
/* The loader of images (target/images.h) for a session: gives each image its unwind table. */
#include "session/loader.h"

#include "unwind/unwind.h"

const struct sf_image_loader sf_session_loader = {
	.load = sf_image_load_table, .unload = sf_image_unload_table,
};
