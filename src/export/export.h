/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Exporters: a profile, written in a format that other tools read.
 *
 * To add one: write export/yourformat.c, add it to `exporters` in export/export.c and to
 * export/meson.build, give tests/e2e/test_export.py a case, and describe it in docs/exports.md.
 */
#ifndef SF_EXPORT_EXPORT_H
#define SF_EXPORT_EXPORT_H

#include <stdio.h>

#include "base/error.h"
#include "recording/profile.h"

struct sf_exporter {
	const char *name;       /* as in --format NAME */
	const char *summary;    /* one line, for --help */
	const char *suffix;     /* of the file that is written when -o is not given: ".html" */
	bool binary;            /* not to be written to a terminal */

	/* Writes to `out`, which the caller opened and closes; checks ferror at its end. */
	bool (*write)(const struct sf_profile *profile, const struct sf_filter *filter, FILE *out,
		      struct sf_error *err);
};

extern const struct sf_exporter sf_export_collapsed, sf_export_pprof, sf_export_speedscope,
	sf_export_html;

/* All exporters, NULL at the end; and the one with this name, or NULL. */
extern const struct sf_exporter *const sf_exporters[];
const struct sf_exporter *sf_exporter_by_name(const char *name);

#endif
