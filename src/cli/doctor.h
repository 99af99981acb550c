/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of `stillframe doctor`. */
#ifndef SF_CLI_DOCTOR_H
#define SF_CLI_DOCTOR_H

#include <stdbool.h>
#include <stdint.h>

#include "base/output.h"

/* Prints a line of the report: fine or not, the finding, and the advice (may be empty). */
void sf_doctor_finding(const struct sf_output *output, bool fine, const char *what,
		       const char *advice);

/* Prints how far the runtimes in a process can be shown; prints nothing if there is no runtime. */
void sf_doctor_runtimes(const struct sf_output *output, int32_t pid);

#endif
