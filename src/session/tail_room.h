/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The memory of the tails of threads (frozen/unwind/tail.h). It grows with what their walks could not keep, within a bound
 * for each thread and one for all.
 */
#ifndef SF_SESSION_TAIL_ROOM_H
#define SF_SESSION_TAIL_ROOM_H

#include "frozen/unwind/tail.h"

/* Bytes of all tails. Zero at the begin. */
struct sf_tail_room {
	uint64_t used;
};

/* After a walk: gives the tail the room that it lacked; then it is empty. Where there is no memory it stays as it is. */
void sf_tail_room_fit(struct sf_tail_room *room, struct sf_tail *tail);

/* Gives the memory of a tail back. It is zero then. */
void sf_tail_room_free(struct sf_tail_room *room, struct sf_tail *tail);

#endif
