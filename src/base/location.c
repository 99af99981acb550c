/* SPDX-License-Identifier: Apache-2.0 */
/* The name of code that nothing names. */
#include "base/location.h"

#include <stdio.h>
#include <string.h>

void sf_location_unknown(const char *path, char ret[SF_UNKNOWN_SIZE])
{
	const char *slash = strrchr(path, '/');
	const char *name = slash ? slash + 1 : path;

	if (!*name)
		snprintf(ret, SF_UNKNOWN_SIZE, "[unknown, in no file]");
	else if (*name == '[') /* [vdso] */
		snprintf(ret, SF_UNKNOWN_SIZE, "[unknown in %.250s", name + 1);
	else
		snprintf(ret, SF_UNKNOWN_SIZE, "[unknown in %.250s]", name);
}
