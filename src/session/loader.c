/* SPDX-License-Identifier: Apache-2.0 */
#include "session/loader.h"

#include "unwind/image_table.h"

const struct sf_image_loader sf_session_loader = {
	.load = sf_image_load_table, .unload = sf_image_unload_table,
};
