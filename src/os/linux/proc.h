/* SPDX-License-Identifier: Apache-2.0 */
/* Reading small files of /proc. For src/os/linux only. */
#ifndef SF_OS_LINUX_PROC_H
#define SF_OS_LINUX_PROC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* An open /proc/PID/NAME, or with tid > 0 /proc/PID/task/TID/NAME; -1 and errno. */
int sf_proc_open(int32_t pid, int32_t tid, const char *name);

/* Its text, cut to size - 1 bytes, with a zero behind; false and errno. */
bool sf_proc_read(int32_t pid, int32_t tid, const char *name, char *ret, size_t size);

/* A field of .../stat as a number, from the ')' behind the name on (3 is the state letter); 0: it is not there. */
uint64_t sf_proc_stat_field(const char *p, int number);

/* As fscanf(3), of a file with a few numbers. Values that cannot be read stay unchanged. */
__attribute__((format(scanf, 2, 3))) void sf_proc_scan(const char *path, const char *format, ...);

#endif
