/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The asynchronous methods that await one whose code runs. Where an asynchronous method has waited once, its variables
 * are in an object, which is the task that it completes, too. The task's continuation leads to the object of the method
 * that awaits it. Ordinary code, one thread at a time.
 */
#ifndef SF_RUNTIME_CORECLR_AWAITERS_H
#define SF_RUNTIME_CORECLR_AWAITERS_H

#include "frozen/still.h"
#include "frozen/trace.h"
#include "runtime/coreclr/places.h"

/* A cache of facts about the types of objects; owned by the caller, from calloc. */
struct sf_clr_object_types;

struct sf_clr_object_types *sf_clr_object_types_create(void);   /* NULL: no memory */
void sf_clr_object_types_destroy(struct sf_clr_object_types *types); /* takes NULL */

/*
 * As sf_runtime_driver.awaiters. A frame has the kind SF_KIND_AWAITING; its token is the MethodTable of a state
 * machine, and its id the machine's state. Token 0 stands for awaiters that could not be read: the method has completed
 * since the sample, or objects were being moved.
 */
uint32_t sf_clr_awaiters(struct sf_clr_object_types *types, struct sf_clr_places *places, const struct sf_still *still,
			 const struct sf_trace *trace, uint32_t slot, struct sf_frame *ret, uint32_t capacity, uint32_t *at_ret);

#endif
