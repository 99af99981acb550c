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

const char *sf_setting_event(const struct sf_setting *settings)
{
	const char *event = sf_setting(settings, SF_SETTING_EVENT);

	return event && strcmp(event, "cpu-clock") != 0 ? event : NULL;
}
