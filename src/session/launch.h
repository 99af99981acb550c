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
#include "capture/engine.h"

struct sf_launched {
	int32_t pid;
	const char *program; /* argv[0] of sf_launch */
	const char *variable; /* "NAME=value", the caller's, for its environment, as an engine's; NULL: none */
	int go_fd;       /* written to when it may exec */
	int error_fd;    /* gives errno if that failed */
	int exec_error;  /* that errno, once sf_launch_go has failed by it; else 0 */
};

bool sf_launch(char *const *argv, struct sf_launched *ret, struct sf_error *err);

/*
 * Lets the child exec, with what the engine needs added to its environment. The engine's library goes in front of the
 * child's LD_PRELOAD, but behind the library of a gcc sanitizer that the program needs: that library ends a program in
 * which another one is loaded before it. `name` is for messages. False when the child could not exec (no such command);
 * then it has ended.
 */
bool sf_launch_go(struct sf_launched *launched, const char *name, const struct sf_child_needs *needs,
		  struct sf_error *err);

/* Instead: it ends without having run anything. */
void sf_launch_cancel(struct sf_launched *launched);

/* Its status as waitpid gives it if it has ended; else -1. */
int sf_launch_poll(const struct sf_launched *launched);

/* Waits for its end; its status as waitpid gives it, -1 when unknown. */
int sf_launch_wait(const struct sf_launched *launched);

#endif
