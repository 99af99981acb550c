/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The kernel's tracepoints: their numbers, by which perf events name them, and where their fields lie in a record. Both are in
 * files of tracefs, which root may read. Where it is not mounted, root reads a mount of its own that no other process sees.
 */
#ifndef SF_OS_TRACEPOINTS_H
#define SF_OS_TRACEPOINTS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

#define SF_TRACEPOINT_FORMAT 8192

struct sf_tracepoint {
	uint32_t number;
	char format[SF_TRACEPOINT_FORMAT]; /* the kernel's description of the record */
};

/* False: there is none of this name, or this user may not read of it; err says which. */
bool sf_tracepoint_find(const char *system, const char *name, struct sf_tracepoint *ret, struct sf_error *err);

/*
 * Whether the fields of records name threads as this process does: by the ids of the first pid namespace. (The ids that the
 * kernel's perf events add to a record are always those of the namespace of who opened the event.) Else err says so.
 */
bool sf_tracepoints_name_threads(struct sf_error *err);

/* The offset of a field in the record; below 0: there is none, or it has not this size. */
int sf_tracepoint_field(const struct sf_tracepoint *tracepoint, const char *field, unsigned size);

#endif
