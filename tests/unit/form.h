/* SPDX-License-Identifier: Apache-2.0 */
/* Which form of a test runs: the short one, or the long one of `make check-long` (tests/README.md). */
#ifndef SF_TEST_FORM_H
#define SF_TEST_FORM_H

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

static inline bool is_long_form(void)
{
	const char *form = getenv("STILLFRAME_LONG");

	return form && strcmp(form, "1") == 0;
}

#endif
