/* SPDX-License-Identifier: Apache-2.0 */
/* The list of exporters. */
#include "export/export.h"

#include <string.h>

const struct sf_exporter *const sf_exporters[] = {
#define X(name) &sf_export_##name,
	SF_EXPORTERS(X)
#undef X
	NULL,
};

const struct sf_exporter *sf_exporter_by_name(const char *name)
{
	for (const struct sf_exporter *const *e = sf_exporters; *e; e++) {
		if (strcmp((*e)->name, name) == 0)
			return *e;
	}
	return NULL;
}
