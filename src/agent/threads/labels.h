/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Labels. Each different pair of key and value has a number, which has a record in the outbox before a sample carries
 * it. Not for the sampler, which must not wait for their lock.
 */
#ifndef SF_AGENT_THREADS_LABELS_H
#define SF_AGENT_THREADS_LABELS_H

#include <stdbool.h>

#include "base/error.h"
#include "frozen/signal/thread_table.h"

/* A stream begins, which has no labels yet: writes the records of those that threads have now. */
void sf_agent_labels_begin(void);

/* Samples of this entry's thread carry it from now on. False: too long, or too many of them; then they carry none. */
bool sf_agent_label_set(struct sf_thread_entry *entry, const char *key, const char *value,
			struct sf_error *err);

#endif
