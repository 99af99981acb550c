/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory for a table that is read from its file in the cache. The file itself is not mapped, because the user's other
 * programs can shorten it at any time. Access to a page that a mapped file does not have any more raises SIGBUS, which
 * in the agent would end the watched program. On a network file system a removal by another machine is enough.
 */
#ifndef SF_UNWIND_ROOM_H
#define SF_UNWIND_ROOM_H

#include <stdbool.h>
#include <stddef.h>

/*
 * From now on tables are read into files without a name, where the cache's file system is local and has such files. These
 * nobody else can reach, and the kernel can take their pages back. For the agent: a table is nothing that its
 * process should need memory for. Else, and elsewhere, tables are in anonymous memory.
 */
void sf_room_spare_memory(void);

/*
 * The first `size` bytes of the file behind `fd`, read-only; munmap them. `folder`: a descriptor of the folder that the
 * file is in. False: there are not so many, or no memory.
 */
bool sf_room_fill(int folder, int fd, size_t size, void **ret);

#endif
