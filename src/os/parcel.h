/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Descriptors that wait in a socket. A thread with a descriptor table of its own (own_fd.h) loses what is open in it
 * when it ends. Before that it puts its descriptors into a parcel, and a later thread takes them out, under their
 * numbers, into a table of its own. Meanwhile only the parcel's socket is open in the program's table.
 */
#ifndef SF_OS_PARCEL_H
#define SF_OS_PARCEL_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/un.h>

#include "os/own_fd.h"

struct sf_parcel {
	struct sf_own_fd socket;
	struct sockaddr_un name; /* one that the kernel chose */
	uint32_t name_size;
	uint64_t secret;         /* a message without it is from somebody else */
};

/* In the calling thread's table. False: not possible here. */
bool sf_parcel_make(struct sf_parcel *ret);
/* Puts all descriptors of the calling thread's own table but 0, 1 and 2. They stay open until the thread ends. */
bool sf_parcel_fill(const struct sf_parcel *parcel);
/*
 * Takes them out into the calling thread's own table, in which the socket must have been kept, and closes the socket there.
 * False: they are lost.
 */
bool sf_parcel_take(struct sf_parcel *parcel);

#endif
