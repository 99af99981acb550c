/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How ordinary code fails: a function returns false (or NULL) and fills the caller's
 * struct sf_error. Nothing to free. Nobody below the command line prints.
 */
#ifndef SF_BASE_ERROR_H
#define SF_BASE_ERROR_H

#include <stdbool.h>
#include <stddef.h>

enum sf_code {
	SF_E_NONE,
	SF_E_SYSTEM,      /* a system call failed; os_errno says how */
	SF_E_NO_MEMORY,
	SF_E_INPUT,       /* a file or an option is not what it should be */
	SF_E_DENIED,      /* the kernel or its policy refuses */
	SF_E_GONE,        /* the process or thread has ended */
	SF_E_UNSUPPORTED, /* not on this machine or kernel */
};

struct sf_error {
	enum sf_code code;
	int  os_errno;      /* when code is SF_E_SYSTEM, SF_E_DENIED or SF_E_GONE; else 0 */
	char text[512];     /* what failed, to what, why; then, on lines of their own, what to do */
};

/*
 * All return false, take a format that the compiler checks, and accept a NULL `err`. Control
 * characters in what they are given are replaced (sf_sanitize): only a hint begins a line.
 */
bool sf_fail(struct sf_error *err, enum sf_code code, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* The same with ": " and the text of errno behind; the code follows from errno. */
bool sf_fail_os(struct sf_error *err, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/*
 * The meaning of an errno, in English. strerror() is not used, because it takes locks to find a translation. If another
 * thread holds these locks during a fork, they stay locked in the child, and strerror() never returns there.
 */
const char *sf_os_error(int error);

bool sf_fail_memory(struct sf_error *err);

/*
 * A message and its hints as sentences on one line: "what failed: why. What to do." Returns ret, which is cut where its
 * room ends.
 */
char *sf_error_sentences(const char *lines, char *ret, size_t size);

/* Adds a line ("what to do") behind the text. Returns false too. */
bool sf_fail_hint(struct sf_error *err, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

#endif
