/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pieces of ILC's linkage names, and where they end (ilc_names.c). Two underscores separate a type from its method, and
 * arguments. They also stand in names that the C# compiler makes, for <>c, <>c__DisplayClass0_0, <Name>d__1 and the
 * like, which are known by their forms. For src/symbols only.
 */
#ifndef SF_SYMBOLS_ILC_PIECES_H
#define SF_SYMBOLS_ILC_PIECES_H

#include <stdbool.h>

#include "base/text.h"

#define SF_ILC_MAX_ARGUMENTS 16u

/* Its bytes from `from` up to `to`, which are in it. */
static inline struct sf_piece sf_ilc_part(struct sf_piece piece, size_t from, size_t to)
{
	return (struct sf_piece){ piece.at + from, to - from };
}

/* Whether `text` is at `at`; any `at`. */
bool sf_ilc_begins(struct sf_piece piece, size_t at, const char *text);
bool sf_ilc_is(struct sf_piece piece, const char *text);

/* How many digits are at `at`. */
size_t sf_ilc_digits(struct sf_piece piece, size_t at);

/* Whether a name may end at `at`. */
bool sf_ilc_is_end(struct sf_piece piece, size_t at);

/*
 * The length of a name with underscores in front at `at`, one of which separates it from what is before; 0: there is
 * none. It is one of a closure or the like, and *written_ret is how it is shown, with a dot in front; or one of a state
 * machine ("__Name_d__1"), and *name_ret is its method's.
 */
size_t sf_ilc_made_at(struct sf_piece piece, size_t at, const char **written_ret);
size_t sf_ilc_machine_at(struct sf_piece piece, size_t at, struct sf_piece *name_ret);

/* Where the next "__" is that is in no name and in no arguments, or the end. */
size_t sf_ilc_separator(struct sf_piece piece, size_t at);

/* The pieces between separators; their number. */
size_t sf_ilc_split(struct sf_piece piece, struct sf_piece ret[SF_ILC_MAX_ARGUMENTS]);

#endif
