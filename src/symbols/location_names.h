/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The texts of locations: each is kept once, and each linkage name is made readable once. For
 * src/symbols only.
 *
 * Texts are owned by the names and live as long as they do. A function that is named gets both
 * its names, `function` and `linkage`. Functions that return false, or NULL, do so when memory ran out.
 */
#ifndef SF_SYMBOLS_LOCATION_NAMES_H
#define SF_SYMBOLS_LOCATION_NAMES_H

#include "base/intern.h"
#include "base/vec.h"
#include "symbols/symbols.h"

struct sf_location_names {
	const char *base; /* the last part of the image's path, or "" */
	struct sf_intern *strings;
	SF_VEC(const char *) readable; /* by the number of a linkage name; NULL: not known yet */
};

/* `path`: of the image, or NULL. Deinit in any case. */
bool sf_location_names_init(struct sf_location_names *names, const char *path);
void sf_location_names_deinit(struct sf_location_names *names); /* of zeroed ones too */

/* A text as it is, cut where it is longer than any honest name. */
const char *sf_location_names_add(struct sf_location_names *names, const char *text);

/* As the linker sees it. */
bool sf_location_by_linkage(struct sf_location_names *names, const char *linkage,
			    struct sf_location *ret);

#endif
