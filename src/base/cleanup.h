/* SPDX-License-Identifier: Apache-2.0 */
/* Scope-based cleanup: SF_CLEANUP(fclose) FILE *file = ...; runs when the scope is left. */
#ifndef SF_BASE_CLEANUP_H
#define SF_BASE_CLEANUP_H

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define SF_CLEANUP(fn) __attribute__((cleanup(sf_cleanup_##fn)))

/* Takes the value out of a variable that has a cleanup, so that the cleanup does nothing. */
#define sf_steal(p)                                                                                \
	({                                                                                         \
		__auto_type taken_ = *(p);                                                         \
		*(p) = NULL;                                                                       \
		taken_;                                                                            \
	})
#define sf_steal_fd(p)                                                                             \
	({                                                                                         \
		int taken_ = *(p);                                                                 \
		*(p) = -1;                                                                         \
		taken_;                                                                            \
	})

/* To add one for a type of your own: SF_DEFINE_CLEANUP(struct sf_thing *, sf_thing_destroy). */
#define SF_DEFINE_CLEANUP(type, fn)                                                                \
	static inline __attribute__((unused)) void sf_cleanup_##fn(type *p)                        \
	{                                                                                          \
		if (*p)                                                                            \
			fn(*p);                                                                    \
	}

SF_DEFINE_CLEANUP(FILE *, fclose)

static inline __attribute__((unused)) void sf_cleanup_free(void *p)
{
	free(*(void **)p);
}

static inline __attribute__((unused)) void sf_cleanup_close(int *fd)
{
	if (*fd >= 0)
		close(*fd);
}

#endif
