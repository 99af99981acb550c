/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Temporary files and folders that nothing must be left of when a signal ends the program: SIGINT, SIGTERM, SIGHUP,
 * SIGQUIT, where the default action would end it. For programs with one thread that writes such files.
 */
#ifndef SF_BASE_LEFTOVERS_H
#define SF_BASE_LEFTOVERS_H

#define SF_MAX_LEFTOVERS 4

/*
 * From now on such a signal removes the file, or the folder if it is empty then: what was added last goes first. Nothing
 * need be there yet, or any more. The path is the caller's, and stays until sf_leftover_forget(). At most
 * SF_MAX_LEFTOVERS at a time; more are not removed.
 */
void sf_leftover_add(const char *path);

/* The same pointer as was added; others are ignored. */
void sf_leftover_forget(const char *path);

#endif
