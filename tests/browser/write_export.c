/* SPDX-License-Identifier: Apache-2.0 */
/* write_export FORMAT OUT [RECORDING]: an export of a recording, or of the fake profile. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "export/export.h"
#include "fake_profile.h"

static int fail(const struct sf_error *err)
{
	fprintf(stderr, "write_export: %s\n", err->text);
	return EXIT_FAILURE;
}

static const struct sf_exporter *find(const char *name)
{
	for (const struct sf_exporter *const *e = sf_exporters; *e; e++) {
		if (strcmp((*e)->name, name) == 0)
			return *e;
	}
	return NULL;
}

int main(int argc, char **argv)
{
	const struct sf_exporter *exporter = argc > 2 ? find(argv[1]) : NULL;
	const struct sf_profile *profile = fake_profile();
	struct sf_filter filter = { .clock = SF_CLOCK_WALL };
	struct sf_profile *loaded = NULL;
	struct sf_error err = { 0 };
	FILE *out;

	if (!exporter) {
		fprintf(stderr, "usage: write_export FORMAT OUT [RECORDING]\n");
		return 2;
	}
	if (argc > 3 && !sf_profile_load(argv[3], NULL, &loaded, &err))
		return fail(&err);
	if (loaded)
		profile = loaded;
	if (profile->measure.is_all)
		filter.clock = SF_CLOCK_EVENT;
	out = fopen(argv[2], "w");
	if (!out) {
		sf_fail_os(&err, "cannot write %s", argv[2]);
		return fail(&err);
	}
	if (!exporter->write(profile, &filter, out, &err) || fclose(out) != 0)
		return fail(&err);
	sf_profile_destroy(loaded);
	return EXIT_SUCCESS;
}
