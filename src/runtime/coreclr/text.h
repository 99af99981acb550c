/* SPDX-License-Identifier: Apache-2.0 */
/* A text that is put together in a buffer of fixed size. Text that does not fit is cut. */
#ifndef SF_RUNTIME_CORECLR_TEXT_H
#define SF_RUNTIME_CORECLR_TEXT_H

#include <stddef.h>
#include <string.h>

struct sf_clr_text {
	char *at;
	size_t left; /* with room for the zero at the end */
};

/* `size` is at least 1. */
static inline struct sf_clr_text sf_clr_text_in(char *buffer, size_t size)
{
	*buffer = 0;
	return (struct sf_clr_text){ buffer, size };
}

static inline void sf_clr_put_n(struct sf_clr_text *text, const char *bytes, size_t n)
{
	if (n > text->left - 1)
		n = text->left - 1;
	memcpy(text->at, bytes, n);
	text->at += n;
	text->left -= n;
	*text->at = 0;
}

static inline void sf_clr_put(struct sf_clr_text *text, const char *string)
{
	sf_clr_put_n(text, string, strlen(string));
}

#endif
