/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The events of runtimes that `record --event` samples, of every runtime in the list: their names, and the text that a
 * user gives. Ordinary code.
 */
#ifndef SF_RUNTIME_EVENTS_H
#define SF_RUNTIME_EVENTS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "runtime/runtime.h"

/*
 * The user's choice: the event `place` of the runtime in `slot`, with one sample for each `each` of its unit; 0: as
 * many as the budget allows.
 */
struct sf_runtime_event_choice {
	const struct sf_runtime_event *event;  /* NULL: none */
	uint32_t slot;
	size_t   place;
	uint64_t each;
};

/* Whether "NAME", "NAME/N" or "NAME=N" has the name of an event of some runtime. */
bool sf_runtime_has_event(const char *text);

/* Whether the process has the runtime whose event a text with such a name is for. True where that cannot be found out. */
bool sf_runtime_event_is_in(const char *text, int32_t pid, struct sf_error *err);

/* "NAME", "NAME/N" or "NAME=N". */
bool sf_runtime_event_parse(const char *text, struct sf_runtime_event_choice *ret, struct sf_error *err);

#endif
