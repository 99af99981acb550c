/* SPDX-License-Identifier: Apache-2.0 */
/* A part of a text, and a text that is put together in a buffer of fixed size. Text that does not fit is cut. */
#ifndef SF_BASE_TEXT_H
#define SF_BASE_TEXT_H

#include <stddef.h>
#include <string.h>

/* It ends with no zero of its own. */
struct sf_piece {
	const char *at;
	size_t n;
};

static inline struct sf_piece sf_piece_of(const char *string)
{
	return (struct sf_piece){ string, strlen(string) };
}

struct sf_text {
	char *at;
	size_t left; /* with room for the zero at the end */
};

/* `size` is at least 1. */
static inline struct sf_text sf_text_in(char *buffer, size_t size)
{
	*buffer = 0;
	return (struct sf_text){ buffer, size };
}

static inline void sf_text_put_n(struct sf_text *text, const char *bytes, size_t n)
{
	if (n > text->left - 1)
		n = text->left - 1;
	memcpy(text->at, bytes, n);
	text->at += n;
	text->left -= n;
	*text->at = 0;
}

static inline void sf_text_put(struct sf_text *text, const char *string)
{
	sf_text_put_n(text, string, strlen(string));
}

#endif
