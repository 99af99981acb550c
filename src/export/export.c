/* SPDX-License-Identifier: Apache-2.0 */
/* The list of exporters. */
#include "export/export.h"

const struct sf_exporter *const sf_exporters[] = {
#define X(name) &sf_export_##name,
	SF_EXPORTERS(X)
#undef X
	NULL,
};
