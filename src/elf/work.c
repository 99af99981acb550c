/* SPDX-License-Identifier: Apache-2.0 */
/* The limit for the work on the files of a target, and the turns in which large files are read. */
#include "elf/work.h"

#include <stddef.h>

void sf_work_init(struct sf_work *work)
{
	atomic_init(&work->left, SF_WORK_BYTES);
	work->stop = NULL;
	work->turn = (pthread_mutex_t)PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
}

void sf_work_deinit(struct sf_work *work)
{
	pthread_mutex_destroy(&work->turn);
}

bool sf_work_goes_on(const struct sf_work *work)
{
	return !work || !work->stop || !atomic_load_explicit(work->stop, memory_order_relaxed);
}

bool sf_work_spend(struct sf_work *work, uint64_t bytes)
{
	uint64_t left;

	if (!work)
		return true;
	left = atomic_load_explicit(&work->left, memory_order_relaxed);
	do {
		if (bytes > left)
			return false;
	} while (!atomic_compare_exchange_weak_explicit(&work->left, &left, left - bytes,
							memory_order_relaxed,
							memory_order_relaxed));
	return sf_work_goes_on(work);
}

bool sf_work_fail(const struct sf_work *work, struct sf_error *err)
{
	if (!sf_work_goes_on(work))
		return sf_fail(err, SF_E_UNSUPPORTED, "interrupted");
	return sf_fail(err, SF_E_UNSUPPORTED, "it takes more work or memory than stillframe spends "
					      "on the files of a program");
}
