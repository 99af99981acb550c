/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The answers of a child that looks up names (lookup.h), in memory that it shares with its parent at
 * the same address. The parent reads them after the child has ended. The child reads hostile data, so its
 * answers are hostile too: each pointer is checked. For src/symbols only.
 */
#ifndef SF_SYMBOLS_ANSWERS_H
#define SF_SYMBOLS_ANSWERS_H

#include <stdatomic.h>

#include "base/intern.h"
#include "base/vec.h"
#include "symbols/symbols.h"

struct sf_answer {
	size_t n;
	struct sf_location locations[];
};

struct sf_answers {
	size_t size, n;                   /* bytes of memory; addresses */
	struct sf_answers_memory {
		size_t used;              /* bytes; texts and answers follow the array */
		bool complete;            /* all addresses got the answers that they can get */
		struct sf_answer *_Atomic of[]; /* each address; NULL: none */
	} *memory;

	/* In the child. */
	const size_t *numbers;            /* of the addresses, by the index of a sf_location_fn */
	struct sf_intern *texts;          /* by where they come from */
	SF_VEC(const char *) copies;      /* of the texts, by number - 1 */
};

/* Zeroed memory of `size` bytes for the answers to `n` addresses. False: there is none. */
bool sf_answers_open(struct sf_answers *ret, size_t n, size_t size);
void sf_answers_close(struct sf_answers *answers);

/* In the child: a sf_location_fn with `answers`. Ends the process where memory is short. */
void sf_answers_put(size_t index, const struct sf_location *locations, size_t n, void *answers);

/* In the parent: passes on what has come. False: some of it made no sense. */
bool sf_answers_report(const struct sf_answers *answers, sf_location_fn *fn, void *arg);

#endif
