/* SPDX-License-Identifier: Apache-2.0 */
/* Names of files as debug data gives them. For src/symbols only. */
#ifndef SF_SYMBOLS_PATHS_H
#define SF_SYMBOLS_PATHS_H

#include <limits.h>
#include <stdio.h>

#define SF_JOINED_MAX (2 * PATH_MAX)

/* `name`, below `folder` ("": there is none) unless it is absolute; "" when it is too long. */
static inline void sf_join_path(const char *folder, const char *name, char ret[SF_JOINED_MAX])
{
	if (name[0] == '/')
		folder = "";
	if (snprintf(ret, SF_JOINED_MAX, "%s%s%s", folder, *folder ? "/" : "", name) >=
	    SF_JOINED_MAX)
		ret[0] = 0;
}

#endif
