/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SF_CLI_STACK_H
#define SF_CLI_STACK_H

/*
 * Runs the command with a stack that suffices. stillframe may be started under a small limit for stacks (RLIMIT_STACK),
 * which holds for a command that it launches and stays as it is; so the command then runs in a thread with a stack of
 * its own.
 */
int sf_cli_with_stack(int (*run)(int argc, char **argv), int argc, char **argv);

#endif
