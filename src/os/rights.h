/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rights that a process needs to look at others, one by one, so that a program can have these and no more.
 *
 * Linux: capabilities(7). They can be the file's (setcap); then an ordinary user has them in this program only.
 */
#ifndef SF_OS_RIGHTS_H
#define SF_OS_RIGHTS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"

/* X(NAME, text) */
#define SF_RIGHTS(X)                                                                                                 \
	X(PERFMON, "CAP_PERFMON")       /* perf events of all processes and of the kernel */                           \
	X(BPF, "CAP_BPF")               /* BPF programs; to read the kernel's memory they need PERFMON, too */         \
	X(TRACE, "CAP_SYS_PTRACE")      /* memory of other users' processes, and holding their threads */              \
	X(SYMBOLS, "CAP_SYSLOG")        /* addresses of the kernel's functions */                                      \
	X(PRIORITY, "CAP_SYS_NICE")     /* a real-time priority (os/cpu.h) */

enum sf_right {
#define X(name, text) SF_RIGHT_##name,
	SF_RIGHTS(X)
#undef X
	SF_N_RIGHTS
};

#define SF_RIGHT_BIT(name) (1u << SF_RIGHT_##name)
#define SF_ALL_RIGHTS ((1u << SF_N_RIGHTS) - 1)

/* Those of `rights` (bits) that this process does not have. In a user namespace only TRACE counts. */
unsigned sf_rights_missing(unsigned rights);

/* "CAP_BPF and CAP_PERFMON"; "" for none. Returns ret. */
const char *sf_rights_text(unsigned rights, char *ret, size_t size);

/*
 * The way to give these rights to this process, as a part of a sentence: "have CAP_BPF (stillframe doctor --setcap)";
 * in a user namespace, where these rights count for nothing: "run stillframe outside its user namespace with CAP_BPF".
 * Returns ret.
 */
const char *sf_rights_to_have(unsigned rights, char *ret, size_t size);

/* Adds to err, which says that a process may not be traced, what would allow it. Returns false. */
bool sf_rights_hint_at_trace(struct sf_error *err);

/* As setcap takes them: "cap_perfmon,cap_bpf". Returns ret. */
const char *sf_rights_setcap(unsigned rights, char *ret, size_t size);

/* Whether this process is in a user namespace other than the first one. */
bool sf_rights_are_inner(void);

/*
 * Whether the file of the program gave this process rights that its user does not have. sf_rights_drop() gives them up,
 * if so: in a child that does without them. Signal-safe.
 */
bool sf_rights_are_from_file(void);
void sf_rights_drop(void);

/* Whether the kernel is locked down so far that nobody may read its memory. */
bool sf_kernel_is_locked(void);

/* Whether the kernel is of this version, or a later one. */
bool sf_kernel_is(unsigned major, unsigned minor);

#endif
