/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The limit for the work on all files of a target together, on any number of threads. The limit is a
 * number of bytes that are read and parsed. Large files are read in turns, so that only one of them at
 * a time is in memory. All work can be cancelled when the user stops the program.
 *
 * Any threads may call these functions at the same time. A NULL pointer means work without a limit.
 */
#ifndef SF_ELF_WORK_H
#define SF_ELF_WORK_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

/*
 * Unwind information is understood at 30 to 100 MB/s on one CPU: this is at most some seconds of
 * work. chromium, the largest program seen, has 20 MB, a desktop's other programs less than 5.
 */
#define SF_WORK_BYTES ((uint64_t)192 << 20)

struct sf_work {
	_Atomic uint64_t left;        /* bytes */
	const atomic_bool *stop;      /* becomes true: all work ends; NULL: never does */
	pthread_mutex_t turn;         /* recursive: of the thread that reads a large file (elf/file.c) */
};

void sf_work_init(struct sf_work *work);
void sf_work_deinit(struct sf_work *work);

/* Whether to go on; false for good when it was ended. */
bool sf_work_goes_on(const struct sf_work *work);

/* Takes so many bytes from the rest; false when there are not so many left, and when it was ended. */
bool sf_work_spend(struct sf_work *work, uint64_t bytes);

/* The error for work that was not done. */
bool sf_work_fail(const struct sf_work *work, struct sf_error *err);

#endif
