/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program that this process, or a child, executes: whether the agent can be loaded into it, and the environment of one into which
 * it would be loaded for nothing, as it is not sampled.
 */
#ifndef SF_AGENT_INTERPOSE_PROGRAM_H
#define SF_AGENT_INTERPOSE_PROGRAM_H

#include <stdbool.h>
#include <stddef.h>

/*
 * Whether the program is one of the C library musl, whose loader ends a program into which it cannot load the agent, or a
 * script that such a program interprets. A name without a slash is looked for along PATH. False also where there is no such
 * file, or it cannot be read. Signal-safe where the name has a slash, also in the child of a vfork.
 */
bool sf_program_has_musl(const char *name);

/* Whether the name can be read: the kernel refuses one that is in no memory. Signal-safe. */
bool sf_program_is_named(const char *name);

/*
 * In the environment the agent's variable is missing, LD_PRELOAD is without the agent's library, and the words by which a runtime
 * loads the agent are missing, too. A program that is given another STILLFRAME keeps all of it: that one was written by the process
 * itself. The caller, which may be the child of a vfork, has the memory for the copy. Signal-safe.
 */
struct sf_environment_size {
	size_t n;       /* words, with the NULL at the end */
	size_t n_bytes; /* of LD_PRELOAD */
};

/*
 * `variable`: "STILLFRAME=..." as the process inherited it. False: that or the library is not in envp, and there is
 * nothing to do.
 */
bool sf_environment_measure(char *const envp[], const char *variable, struct sf_environment_size *ret);

/* `ret` has room for n words, `text` for n_bytes. Of several LD_PRELOAD, which setenv(3) never makes, the last one counts. */
void sf_environment_copy(char *const envp[], const char *variable, char **ret, char *text);

/* Whether the caller's stack has room for so many bytes, and some more: the program's thread may have a small one. Signal-safe. */
bool sf_environment_has_room(size_t size);

/* Where it has not: memory of its own, which the child of a vfork that executes its program leaves behind. Signal-safe. */
struct sf_environment_memory {
	void *at; /* NULL: none */
	size_t size;
};

void *sf_environment_map(struct sf_environment_memory *memory, size_t size);
void sf_environment_unmap(struct sf_environment_memory *memory);

/*
 * Replaces the parameter `envp` of an interposer, if there is a `variable`. `memory`, of zeroes to begin with, is to be unmapped
 * when the call has failed. Without room anywhere envp stays.
 */
#define SF_ENVIRONMENT_WITHOUT(envp, variable, memory)                                             \
	do {                                                                                       \
		const char *variable_ = (variable);                                                \
		struct sf_environment_size size_;                                                  \
                                                                                                   \
		if (variable_ && sf_environment_measure(envp, variable_, &size_)) {                \
			const size_t bytes_ = size_.n * sizeof(char *) + size_.n_bytes;            \
			char **words_ = sf_environment_has_room(bytes_) ? __builtin_alloca(bytes_) : sf_environment_map(memory, bytes_); \
                                                                                                   \
			if (words_) {                                                              \
				sf_environment_copy(envp, variable_, words_, (char *)(words_ + size_.n)); \
				(envp) = words_;                                                   \
			}                                                                          \
		}                                                                                  \
	} while (0)

#endif
