/* SPDX-License-Identifier: Apache-2.0 */
/* The values that a user gave to the options of engines, by name. */
#include <string.h>

#include "capture/engine.h"

const char *sf_setting(const struct sf_setting *settings, const char *name)
{
	for (; settings && settings->name; settings++) {
		if (strcmp(settings->name, name) == 0)
			return settings->value;
	}
	return NULL;
}
