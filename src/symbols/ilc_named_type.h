/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Named types of ILC's metadata: a type's name, and those of the types and namespaces around it. For src/symbols only.
 */
#ifndef SF_SYMBOLS_ILC_NAMED_TYPE_H
#define SF_SYMBOLS_ILC_NAMED_TYPE_H

#include "symbols/ilc_metadata.h"

#define SF_ILC_MAX_NESTED 16u
#define SF_ILC_MAX_SPACES 32u

/* What may still be gone through: records may refer to each other. */
struct sf_ilc_walk {
	const struct sf_ilc_metadata *metadata;
	size_t left;                 /* bytes */
};

/* False: nothing is left. */
bool sf_ilc_spend(struct sf_ilc_walk *walk, size_t bytes);

/* Generic parameters, or the arguments in their place. */
struct sf_ilc_generics {
	struct sf_bytes list;        /* at its first handle */
	uint32_t n;
	bool are_records;            /* handles are of parameters' records; else of types, or of strings */
};

/* Of the list at the cursor; those beyond the 64th are left out. */
struct sf_ilc_generics sf_ilc_generics_read(struct sf_bytes list, bool are_records);

struct sf_ilc_named_type {
	struct sf_piece names[SF_ILC_MAX_NESTED]; /* the innermost first */
	struct sf_piece spaces[SF_ILC_MAX_SPACES]; /* parts of the namespace, the innermost first */
	unsigned n, n_spaces;
	struct sf_ilc_generics parameters; /* of the innermost type, which has those of the types around it, too */
};

/* The type that a specification has in it; any other stays as it is. */
struct sf_ilc_handle sf_ilc_specified(const struct sf_ilc_metadata *metadata, struct sf_ilc_handle type);

/* Reads a type that has a name, with arguments or without. False: it has none, or a mistake. */
bool sf_ilc_named_type_read(struct sf_ilc_walk *walk, struct sf_ilc_handle type, struct sf_ilc_named_type *ret);

#endif
