/* SPDX-License-Identifier: Apache-2.0 */
/* The summary at the end of `stillframe record`: the samples, the losses and the overhead. */
#ifndef SF_CLI_SUMMARY_H
#define SF_CLI_SUMMARY_H

#include <stdio.h>

#include "session/session.h"

/* `whole`: it ended in order, and all samples are in the file. */
void sf_print_summary(FILE *out, const struct sf_session_options *options,
		      const struct sf_session_result *result, const char *name, bool whole);

#endif
