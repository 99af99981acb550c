/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The variable STILLFRAME= of this process, as child processes inherit it. Its text is the agent's, and lives as long as
 * the process. Ordinary code, one caller at a time.
 */
#ifndef SF_AGENT_VARIABLE_H
#define SF_AGENT_VARIABLE_H

#include "agent/options.h"

/* Children inherit the variable with this value, as the environment has it already. */
void sf_variable_keep(const char *text);

/*
 * The same, but where the options start a stream in a file, this process's id is added to the value, in the environment,
 * too: child processes see by the id that the file is in use. Sets options->first and options->again.
 */
void sf_variable_sign(const char *text, struct sf_agent_options *options);

/* "STILLFRAME=..."; NULL: there is none. Signal-safe. */
const char *sf_variable(void);

#endif
