/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The memory of the watched processes, for walks of their stills. It is read in lines, which are kept.
 *
 * Walks read the same addresses again and again: the code of a virtual machine, and its descriptions of methods. The cached
 * lines serve a still if all of them were read after that still was taken. They are then as good as lines that are read
 * now, and closer to the moment of the still. So a walk of a process that lives never combines a still with older memory, and
 * stills that wait to be walked share the lines that are read for the first of them.
 *
 * A process may have ended before the last stills of it are walked: at its end by itself, or when it is killed. Nothing can
 * be read of it then. Lines that were read at most 0.3 s before such a still serve it. Code and its descriptions are mostly
 * the same for longer than that. A line that has not been read in that time is not there.
 */
#ifndef SF_TARGET_MEMORY_H
#define SF_TARGET_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SF_MEMORY_LINE 4096u

struct sf_memory;

struct sf_memory *sf_memory_create(void); /* NULL: no memory */
void sf_memory_destroy(struct sf_memory *memory); /* takes NULL */

/*
 * Later reads return memory of this process that is no older than since_ns, if it lives. They go through its thread
 * `tid`, as the process's own id cannot be used once its first thread has ended. If the thread has ended,
 * they go through the process.
 */
void sf_memory_turn(struct sf_memory *memory, int32_t pid, int32_t tid, uint64_t since_ns);

/*
 * Where the thread's stack is: pages of it that are not in memory are not read (os/pages.h). It is looked for anew at each
 * turn, and then nowhere.
 */
void sf_memory_set_stack(struct sf_memory *memory, uint64_t start, uint64_t end);

/* All `size` bytes at `addr`, or false. */
bool sf_memory_read(struct sf_memory *memory, void *ret, uint64_t addr, size_t size);

/* The same as they are now, whatever was read before. Of a process that has ended it is what sf_memory_read returns. */
bool sf_memory_read_anew(struct sf_memory *memory, void *ret, uint64_t addr, size_t size);

#endif
