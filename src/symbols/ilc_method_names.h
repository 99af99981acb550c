/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names of methods from ILC's metadata, in the form of names by its debug data (ilc_names.h, die_name.c):
 * "Demo.Box<T>.Inner.Wait<TKey>(System.Collections.Generic.List<T>, int)". For src/symbols only.
 *
 * Arguments of generic types and methods are not in the metadata: their parameters' names stand in their place.
 */
#ifndef SF_SYMBOLS_ILC_METHOD_NAMES_H
#define SF_SYMBOLS_ILC_METHOD_NAMES_H

#include "symbols/ilc_metadata.h"

/* A method, by its records. */
struct sf_ilc_method {
	uint64_t start;              /* address of its code */
	struct sf_ilc_handle owner;  /* the type that it belongs to */
	uint32_t record;             /* of the method, which has what follows; 0: there is none */
	uint32_t name, signature;
	uint32_t arguments;          /* a list of its parameters' names; 0: it is not generic */
};

/* Adds the name. What does not fit is cut; where the metadata has a mistake there is a "?". */
void sf_ilc_put_method(struct sf_text *text, const struct sf_ilc_metadata *metadata, const struct sf_ilc_method *method);

#endif
