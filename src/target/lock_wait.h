/* SPDX-License-Identifier: Apache-2.0 */
/* A thread's wait for something that another thread of its process has, or does: a lock, or the end of a thread. */
#ifndef SF_TARGET_LOCK_WAIT_H
#define SF_TARGET_LOCK_WAIT_H

#include <stdbool.h>
#include <stdint.h>

#define SF_LOCK_CLASS 256

struct sf_lock_wait {
	const char *kind;            /* "mutex", "monitor", ...; SF_WAIT_FOR_END; a constant. NULL: none is known */
	uint64_t address;            /* of the lock */
	char     of[SF_LOCK_CLASS];  /* the class of a runtime's lock; "" */
	int32_t  owner;              /* the thread's id, as its own pid namespace numbers it; 0: not known */
	bool     timed;              /* the wait ends by itself some time */
};

#define SF_WAIT_FOR_END "end"        /* the wait is for the owner's end; there is no lock */

#endif
