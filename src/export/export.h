/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Exporters: a profile, written in a format that other tools read.
 *
 * To add one: its file in export/, its name in SF_EXPORTERS, export/meson.build, a case in tests/e2e/test_export.py, its
 * section in docs/exports.md. The command's help and its messages come from here.
 */
#ifndef SF_EXPORT_EXPORT_H
#define SF_EXPORT_EXPORT_H

#include <stdio.h>

#include "base/error.h"
#include "recording/profile/profile.h"

struct sf_exporter {
	const char *name;       /* as in --format NAME */
	const char *summary;    /* for --help, which has it in brackets behind the name */
	const char *suffix;     /* of the file that is written when -o is not given: ".html" */
	bool binary;            /* not to be written to a terminal */

	/*
	 * Writes to `out`, which the caller opened and closes; checks ferror at its end. The filter was applied by
	 * the caller: its clock says what samples weigh.
	 */
	bool (*write)(const struct sf_profile *profile, const struct sf_filter *filter, FILE *out,
		      struct sf_error *err);
};

/* X(name): the exporters, in the order in which help lists them. */
#define SF_EXPORTERS(X) X(collapsed) X(pprof) X(speedscope) X(html)

#define X(name) extern const struct sf_exporter sf_export_##name;
SF_EXPORTERS(X)
#undef X

/* All exporters, NULL at the end. */
extern const struct sf_exporter *const sf_exporters[];

#endif
