/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A descriptor of ours in a program that is not ours: the program may close it (daemons close all
 * that they do not know), or have another file under its number (dup2). So it gets a number that
 * programs do not reach, and is looked at again before it is used or closed. One system call each.
 */
#ifndef SF_OS_OWN_FD_H
#define SF_OS_OWN_FD_H

#include <stdbool.h>
#include <stdint.h>

struct sf_own_fd {
	int fd;                  /* -1: none */
	uint64_t device, inode;
};

#define SF_NO_OWN_FD ((struct sf_own_fd){ .fd = -1 })
#define SF_OWN_FD_END 16384 /* above all numbers of ours, but where the program has as many files */

/*
 * Moves fd, which is closed, to a high number, close-on-exec; where there is none it stays where it
 * is.
 */
struct sf_own_fd sf_own_fd_make(int fd);
/* Makes the struct for a descriptor that is open already. */
struct sf_own_fd sf_own_fd_of(int fd);
/* Whether the number still means our file. */
bool sf_own_fd_is_ours(const struct sf_own_fd *own);
/* If it does; forgets it in any case. */
void sf_own_fd_close(struct sf_own_fd *own);
/* The same, but not forgotten: another table (sf_own_table) has it still. */
void sf_own_fd_leave(const struct sf_own_fd *own);

/*
 * Gives the calling thread a descriptor table of its own. Only `keep` (-1: none) stays open in it. The
 * numbers 0, 1 and 2 are /dev/null, so that output for them goes nowhere else. From then on, files that
 * the thread opens take no number from the program, and the program cannot close them. The thread keeps
 * no file of the program open. The program's file locks and children are not affected: a process that
 * another thread forks has that thread's table. False: not possible here (before Linux 5.9, or a policy
 * against it); nothing was changed.
 */
bool sf_own_table(const int *keep, unsigned n_keep);
/* For tests: as if it were not possible. */
extern bool sf_own_table_refused;

#endif
