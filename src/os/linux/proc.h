/* SPDX-License-Identifier: Apache-2.0 */
/* Reading small files of /proc. For src/os/linux only. */
#ifndef SF_OS_LINUX_PROC_H
#define SF_OS_LINUX_PROC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* An open /proc/PID/NAME, or with tid > 0 /proc/PID/task/TID/NAME; -1 and errno. */
int sf_proc_open(int32_t pid, int32_t tid, const char *name);

/* Its bytes, cut to size - 1, with a zero behind, and how many; -1 and errno. */
ssize_t sf_proc_bytes(int32_t pid, int32_t tid, const char *name, char *ret, size_t size);

/* Its text, cut to size - 1 bytes, with a zero behind; false and errno. */
bool sf_proc_read(int32_t pid, int32_t tid, const char *name, char *ret, size_t size);

/* Bytes of a .../stat; and its text from the state letter on, behind the name, which may contain anything. NULL: gone. */
#define SF_PROC_STAT 1024
const char *sf_proc_stat(int32_t pid, int32_t tid, char text[SF_PROC_STAT]);

/* The state letter in it (R S D T t Z X I); 0: gone. */
char sf_proc_letter(int32_t pid, int32_t tid);

/* The text from an open file. */
const char *sf_proc_stat_of(int fd, char text[SF_PROC_STAT]);

/* A number in such a text, by its number in proc_pid_stat(5), where the state letter is field 3; 0: it is not there. */
uint64_t sf_proc_stat_field(const char *stat, int number);

/*
 * The rest of the line of .../status that begins with `key`, such as "NSpid:", without blanks before it; false: there
 * is none.
 */
bool sf_proc_status(int32_t pid, int32_t tid, const char *key, char *ret, size_t size);

/* As fscanf(3), of a file with a few numbers. Values that cannot be read stay unchanged. */
__attribute__((format(scanf, 2, 3))) void sf_proc_scan(const char *path, const char *format, ...);

/*
 * Calls fn for each line of a file, without its end, cut to 1,023 bytes, until fn returns false. False then, or if
 * there is no file.
 */
bool sf_proc_lines(const char *path, bool (*fn)(const char *line, void *arg), void *arg);

#endif
