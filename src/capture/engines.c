/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "capture/engine.h"

const struct sf_engine *const sf_engines[] = {
#define X(name) &sf_engine_##name,
	SF_ENGINES(X)
#undef X
	NULL,
};

const struct sf_engine *sf_engine_by_name(const char *name)
{
	for (const struct sf_engine *const *engine = sf_engines; *engine; engine++) {
		if (strcmp((*engine)->name, name) == 0)
			return *engine;
	}
	return NULL;
}
