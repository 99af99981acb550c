/* SPDX-License-Identifier: Apache-2.0 */
/* The reasons for which a runtime loads no profiler, as far as they show in the process. */
#include "agent/coreclr/clr_absence.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/threads/note.h"
#include "runtime/coreclr/load.h"

#define MAX_NOTE 256

static bool is_set_to(const char *variable, const char *value)
{
	const char *found = getenv(variable);

	return found && strcmp(found, value) == 0;
}

/* In the order in which a reason counts. */
static const char *reason(void)
{
	if (!sf_clr_is_in(getpid()))
		return "there was none in the process";
	if (is_set_to("DOTNET_EnableDiagnostics", "0"))
		return "DOTNET_EnableDiagnostics=0 forbids profilers";
	if (is_set_to("DOTNET_EnableDiagnostics_Profiler", "0"))
		return "DOTNET_EnableDiagnostics_Profiler=0 forbids profilers";
	if (!is_set_to("CORECLR_ENABLE_NOTIFICATION_PROFILERS", "1") && !is_set_to("CORECLR_ENABLE_PROFILING", "1"))
		return "it started without the variables by which it loads the agent, and after the profile";
	return "it did not load the agent as a profiler, and does not say why";
}

void sf_clr_note_absence(const char *consequence)
{
	char text[MAX_NOTE];

	snprintf(text, sizeof(text), "%s: %s", consequence, reason());
	sf_note(text);
}
