/* SPDX-License-Identifier: Apache-2.0 */
/* The name of code that nothing names. */
#include "base/location.h"

#include <stdio.h>

void sf_location_unknown(const char *path, char ret[SF_UNKNOWN_SIZE])
{
	const char *name = sf_base_name(path);

	if (!*name)
		snprintf(ret, SF_UNKNOWN_SIZE, "[unknown, in no file]");
	else if (*name == '[') /* [vdso] */
		snprintf(ret, SF_UNKNOWN_SIZE, "[unknown in %.250s", name + 1);
	else
		snprintf(ret, SF_UNKNOWN_SIZE, "[unknown in %.250s]", name);
}
