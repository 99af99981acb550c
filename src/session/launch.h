/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Launching the command that is to be recorded. It keeps our terminal, process group, environment
 * (and what the engine adds to it) and signal dispositions; it starts to run when we are ready to
 * watch.
 */
#ifndef SF_SESSION_LAUNCH_H
#define SF_SESSION_LAUNCH_H

#include <stdint.h>

#include "base/error.h"

struct sf_launched {
	int32_t pid;
	int go_fd;       /* written to when it may exec */
	int error_fd;    /* gives errno if that failed */
	int exec_error;  /* that errno, once sf_launch_go has failed by it; else 0 */
};

bool sf_launch(char *const *argv, struct sf_launched *ret, struct sf_error *err);

/*
 * Lets it exec, with these "NAME=value" texts (NULL at the end; or NULL) in its environment besides
 * what it inherits; false when it could not (no such command), and then it has ended.
 */
bool sf_launch_go(struct sf_launched *launched, const char *name, const char *const *environment,
		  struct sf_error *err);

/* Instead: it ends without having run anything. */
void sf_launch_cancel(struct sf_launched *launched);

/* Waits for its end; its status as waitpid gives it, -1 when unknown. */
int sf_launch_wait(const struct sf_launched *launched);

#endif
