/* SPDX-License-Identifier: Apache-2.0 */
/* The purpose of a blocked thread's wait, by the methods of the class library on its stack. Ordinary code. */
#ifndef SF_RUNTIME_CORECLR_WAITS_H
#define SF_RUNTIME_CORECLR_WAITS_H

#include "frozen/trace.h"
#include "runtime/coreclr/locks.h"
#include "runtime/coreclr/places.h"

/* As sf_runtime_driver.purpose. `slot`: the runtime's, as frames have it. */
const char *sf_clr_purpose(struct sf_clr_places *places, const struct sf_trace *trace, uint32_t slot);

/*
 * The type of the object that it waits for, and the frame of the method that waits for it. NULL: it waits for none
 * whose type is known.
 */
const struct sf_clr_lock_type *sf_clr_waited_type(struct sf_clr_places *places, const struct sf_trace *trace, uint32_t slot,
						  uint32_t *at_ret);

/* The purpose of one function; NULL: it does not wait. */
const char *sf_clr_purpose_of(const char *function);

#endif
