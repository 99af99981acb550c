/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The HTML export: a single file that contains the page of src/web and the data. src/web/page.html
 * marks the place of the data. tests/browser tests the page.
 */
#include "export/export.h"

#include "export/page_data.h"
#include "export/tally.h"
#include "export/web_page.h"

static bool write_html(const struct sf_profile *profile, const struct sf_filter *filter, FILE *out,
		       struct sf_error *err)
{
	SF_CLEANUP(sf_tally_destroy) struct sf_tally *tally = NULL;

	if (!sf_tally_create(profile, filter->clock, false, &tally, err))
		return false;
	fwrite(sf_web_page_head, 1, sf_web_page_head_size, out);
	if (!sf_page_data_write(profile, filter, tally, out))
		return sf_fail_memory(err);
	fwrite(sf_web_page_foot, 1, sf_web_page_foot_size, out);
	return sf_export_finish(out, err);
}

const struct sf_exporter sf_export_html = {
	.name = "html",
	.summary = "one page with everything in it: a flame graph for any browser",
	.suffix = ".html",
	.write = write_html,
};
