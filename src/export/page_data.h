/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The data of the page (src/web), as one JSON object. src/web/data.js reads it:
 *
 *   about      facts of the recording, losses by cause, CPU time seen and counted
 *   threads    [{name, process, pid, tid}]
 *   functions  columns name, module, file (indexes of strings) and kind
 *   nodes      columns parent (how far back), function, line: stacks as a tree, node 0 its root
 *   rows       columns thread, node, state, ticks, cpu, wall (microseconds)
 *   strings    texts, "" first
 *
 * Frames of one function at different lines are one node, with the line of the largest weight, because
 * users compare functions. Nodes and rows without weight are left out.
 */
#ifndef SF_EXPORT_PAGE_DATA_H
#define SF_EXPORT_PAGE_DATA_H

#include "export/tally.h"

/* False when memory ran out. Does not check whether writing to `out` worked. */
bool sf_page_data_write(const struct sf_profile *profile, const struct sf_filter *filter,
			const struct sf_tally *tally, FILE *out);

#endif
