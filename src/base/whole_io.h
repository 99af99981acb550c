/* SPDX-License-Identifier: Apache-2.0 */
/* Reading and writing all of a piece of memory, however many calls it takes. */
#ifndef SF_BASE_WHOLE_IO_H
#define SF_BASE_WHOLE_IO_H

#include <stdbool.h>
#include <stddef.h>

/*
 * From where the descriptor stands. False and errno on an error; false also at the end of a file that has fewer
 * bytes. A call that a signal interrupts is made again. Signal-safe.
 */
bool sf_read_all(int fd, void *ret, size_t size);
bool sf_write_all(int fd, const void *bytes, size_t size);

#endif
