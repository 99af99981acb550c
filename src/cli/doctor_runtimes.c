/* SPDX-License-Identifier: Apache-2.0 */
/* The lines of `stillframe doctor` on the runtimes in a process. */
#include "cli/doctor.h"
#include "session/runtime_check.h"

static void add(const struct sf_runtime_findings *findings, bool good, const char *text,
		const char *advice)
{
	sf_doctor_finding(findings->arg, good, text, advice);
}

void sf_doctor_runtimes(const struct sf_output *output, int32_t pid)
{
	const struct sf_runtime_findings findings = { .add = add, .arg = output };

	/* Where the process cannot be looked at, the engines' lines say why. */
	sf_runtime_check(pid, &findings, NULL);
}
