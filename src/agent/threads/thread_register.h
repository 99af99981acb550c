/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The registration of a thread by itself, with its name and its label. Each different pair of key and value is a label. It
 * has a number, which has a record in the outbox before a sample carries it. Not for the sampler, which must not wait for the
 * labels' lock. Not signal-safe.
 */
#ifndef SF_AGENT_THREADS_THREAD_REGISTER_H
#define SF_AGENT_THREADS_THREAD_REGISTER_H

#include <stdbool.h>

#include "base/error.h"

/* For the calling thread. A label without a value is taken off. One that is refused takes off the one before, too. */
bool sf_agent_thread_register(struct sf_error *err);
void sf_agent_thread_unregister(void);
bool sf_agent_thread_rename(const char *name, struct sf_error *err);
bool sf_agent_thread_label(const char *key, const char *value, struct sf_error *err);

/* A stream begins, which has no labels yet: writes the records of those that threads have now. */
void sf_agent_labels_begin(void);

#endif
