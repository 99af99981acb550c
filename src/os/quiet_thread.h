/* SPDX-License-Identifier: Apache-2.0 */
/* Threads of stillframe that take no signals: these are for the thread that started them. */
#ifndef SF_OS_QUIET_THREAD_H
#define SF_OS_QUIET_THREAD_H

#include <pthread.h>
#include <stdbool.h>

/* As pthread_create(). The caller joins it. False: it could not be started. */
bool sf_quiet_thread_start(pthread_t *ret, void *(*run)(void *arg), void *arg);

#endif
