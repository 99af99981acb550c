/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of `stillframe doctor`. */
#ifndef SF_CLI_DOCTOR_H
#define SF_CLI_DOCTOR_H

#include <stdbool.h>
#include <stdint.h>

#include "base/output.h"

/* One line of the report: fine or not, what, and what to do about it (may be empty). */
void sf_doctor_finding(const struct sf_output *output, bool fine, const char *what,
		       const char *advice);

/* What can be shown of the runtimes in a process; nothing where there is none. */
void sf_doctor_runtimes(const struct sf_output *output, int32_t pid);

#endif
