/* SPDX-License-Identifier: Apache-2.0 */
/* Unwind tables for images: where target/images.h meets unwind/unwind.h. */
#ifndef SF_SESSION_LOADER_H
#define SF_SESSION_LOADER_H

#include "target/images.h"

extern const struct sf_image_loader sf_session_loader;

#endif
