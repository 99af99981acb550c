/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The facts that descriptions of older versions lack: .NET 9 describes itself in part, .NET 8 not at all. One small
 * table for each version has the rest, as it was found in a running process. It is proved at the attach (coreclr.c).
 */
#ifndef SF_RUNTIME_CORECLR_VERSIONS_H
#define SF_RUNTIME_CORECLR_VERSIONS_H

#include "runtime/coreclr/description.h"

/* The first number of a version such as "9.0.2026.41315"; 0: unknown. */
unsigned sf_clr_major(const char *version);

/*
 * Fills in what the description lacks, from the table for this version and from the runtime's g_dacTable at `dac_table`
 * (0: none). False: there is no table for the version.
 */
bool sf_clr_complete(const struct sf_reader *memory, unsigned major, uint64_t dac_table,
		     struct sf_clr_description *description);

#endif
