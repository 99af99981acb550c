/* SPDX-License-Identifier: Apache-2.0 */
/* Reading and writing all of a piece of memory, however many calls it takes. */
#ifndef SF_BASE_WHOLE_IO_H
#define SF_BASE_WHOLE_IO_H

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/*
 * Makes `call` until it has moved `size` bytes; each time it moves the next ones behind the first `done`, and returns how
 * many, as read(2) does. False at an end before, and on an error but EINTR.
 */
#define sf_move_all(done, size, call)                                                              \
	({                                                                                         \
		size_t done = 0;                                                                   \
                                                                                                   \
		while (done < (size)) {                                                            \
			const ssize_t n_ = (call);                                                 \
                                                                                                   \
			if (n_ > 0)                                                                \
				done += (size_t)n_;                                                \
			else if (n_ == 0 || errno != EINTR)                                        \
				break;                                                             \
		}                                                                                  \
		done == (size);                                                                    \
	})

/*
 * From where the descriptor stands. False and errno on an error; false also at the end of a file that has fewer
 * bytes. A call that a signal interrupts is made again. Signal-safe.
 */
bool sf_read_all(int fd, void *ret, size_t size);
bool sf_write_all(int fd, const void *bytes, size_t size);

/*
 * Whether the process may make a file that ends there. False, with errno EFBIG: beyond its limit (RLIMIT_FSIZE), where the
 * kernel does not only refuse, but sends SIGXFSZ, which ends most programs. sf_write_all checks that by itself. Signal-safe.
 */
bool sf_file_may_end_at(uint64_t end);

#endif
