/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A small reader of JSON for CoreCLR's description of itself. The text lies in the memory of a process that is not trusted, so
 * the depth is bounded, nothing is allocated, and what is not JSON ends the reading.
 */
#ifndef SF_RUNTIME_CORECLR_JSON_H
#define SF_RUNTIME_CORECLR_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SF_CLR_JSON_DEPTH 4      /* of objects */

struct sf_clr_json_text {
	const char *at;          /* no zero behind it */
	size_t size;
};

/* A number, a string or a word, and how to get there. */
struct sf_clr_json_value {
	struct sf_clr_json_text names[SF_CLR_JSON_DEPTH]; /* of the members that lead here */
	unsigned n_names;
	unsigned n_arrays;       /* arrays around it, below the innermost member */
	unsigned index;          /* in the innermost array */
	bool is_only;            /* in that array */
	bool is_string;
	struct sf_clr_json_text text; /* without quotes; escapes are left as they are */
};

typedef void sf_clr_json_fn(void *arg, const struct sf_clr_json_value *value);

/* Calls `fn` for each value. False: it is no JSON, or its objects or arrays are too deep. */
bool sf_clr_json_read(const char *text, size_t size, sf_clr_json_fn *fn, void *arg);

bool sf_clr_json_text_is(const struct sf_clr_json_text *text, const char *word);

/* The value as a number, decimal or 0x, in a string or not. */
bool sf_clr_json_number(const struct sf_clr_json_value *value, uint64_t *ret);

#endif
