/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A child that is not sampled loads the agent for nothing when it executes a program: half as much time as the exec itself
 * takes. So it gets the environment that it would have without the agent: no STILLFRAME, and LD_PRELOAD without the library.
 * The copy is on the stack of the caller, who may be the child of a vfork. Signal-safe.
 */
#ifndef SF_AGENT_INTERPOSE_ENVIRONMENT_H
#define SF_AGENT_INTERPOSE_ENVIRONMENT_H

#include <stdbool.h>
#include <stddef.h>

struct sf_environment_size {
	size_t n;       /* words, with the NULL at the end */
	size_t n_bytes; /* of LD_PRELOAD */
};

/* False: the agent is not in it, and there is nothing to do. */
bool sf_environment_measure(char *const envp[], struct sf_environment_size *ret);

/* `ret` has room for n words, `text` for n_bytes. One LD_PRELOAD is expected: libc makes no second one. */
void sf_environment_copy(char *const envp[], char **ret, char *text);

/* Replaces the parameter `envp` of an interposer where `is_useless`. */
#define SF_ENVIRONMENT_WITHOUT(envp, is_useless)                                                   \
	do {                                                                                       \
		struct sf_environment_size size_;                                                  \
                                                                                                   \
		if ((is_useless) && sf_environment_measure(envp, &size_)) {                        \
			char **words_ = __builtin_alloca(size_.n * sizeof(char *));                \
                                                                                                   \
			sf_environment_copy(envp, words_, __builtin_alloca(size_.n_bytes));        \
			(envp) = words_;                                                           \
		}                                                                                  \
	} while (0)

#endif
