/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a managed thread waits for: the purpose of its wait, by the methods of the class library on its stack; the object of
 * the class library, and which thread has it. Ordinary code; hostile input.
 */
#ifndef SF_RUNTIME_CORECLR_WAITS_H
#define SF_RUNTIME_CORECLR_WAITS_H

#include "frozen/trace.h"
#include "runtime/coreclr/places.h"
#include "runtime/coreclr/threads.h"
#include "target/lock_wait.h"

/* A type whose objects are waited for. */
struct sf_clr_lock_type;
extern const struct sf_clr_lock_type sf_clr_type_handle, sf_clr_type_lock, sf_clr_type_slim_lock, sf_clr_type_thread;

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

/*
 * The wait of a thread that is in a method of this type's, which is frame `at` of its trace. `self`: its Thread. A
 * reading counts as objects.h says. False: the object is not on the stack, or which one it is cannot be found.
 */
bool sf_clr_object_wait(const struct sf_clr_naming *naming, const struct sf_clr_threads *threads, uint64_t self,
			const struct sf_clr_lock_type *type, const struct sf_trace *trace, uint32_t at, struct sf_lock_wait *ret);

#endif
