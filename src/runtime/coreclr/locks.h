/* SPDX-License-Identifier: Apache-2.0 */
/* Objects of the class library that a managed thread waits for, and which thread has them. Ordinary code; hostile input. */
#ifndef SF_RUNTIME_CORECLR_LOCKS_H
#define SF_RUNTIME_CORECLR_LOCKS_H

#include "frozen/trace.h"
#include "runtime/coreclr/threads.h"
#include "target/lock_wait.h"

/* A type whose objects are waited for. */
struct sf_clr_lock_type;
extern const struct sf_clr_lock_type sf_clr_type_handle, sf_clr_type_lock, sf_clr_type_slim_lock, sf_clr_type_thread;

/*
 * The wait of a thread that is in a method of this type's, which is frame `at` of its trace. `self`: its Thread. A
 * reading counts as objects.h says. False: the object is not on the stack, or which one it is cannot be found.
 */
bool sf_clr_object_wait(const struct sf_clr_naming *naming, const struct sf_clr_threads *threads, uint64_t self,
			const struct sf_clr_lock_type *type, const struct sf_trace *trace, uint32_t at, struct sf_lock_wait *ret);

#endif
