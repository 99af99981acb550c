/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The memory of this process's runtimes, as the service thread reads it: what was read is kept until
 * sf_runtime_memory_forget(). Ordinary code, the service thread.
 */
#ifndef SF_AGENT_SERVICE_RUNTIME_MEMORY_H
#define SF_AGENT_SERVICE_RUNTIME_MEMORY_H

#include "frozen/still.h"
#include "runtime/prefetch.h"
#include "target/process.h"

struct sf_runtime_memory;

/* `process`: this process, with its runtimes; it outlives the memory. NULL: no memory. */
struct sf_runtime_memory *sf_runtime_memory_create(const struct sf_process *process);
void sf_runtime_memory_destroy(struct sf_runtime_memory *memory); /* takes NULL */

/* All that was read before is too old now. `memory`: a struct sf_runtime_memory. */
void sf_runtime_memory_forget(void *memory);

/* Both are valid as long as the memory. */
struct sf_reader sf_runtime_memory_reader(struct sf_runtime_memory *memory);
struct sf_prefetch sf_runtime_memory_prefetch(struct sf_runtime_memory *memory);

#endif
