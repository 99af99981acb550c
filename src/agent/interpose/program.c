/* SPDX-License-Identifier: Apache-2.0 */
/* A program that the process executes: whether the agent can be loaded into it, and its environment without the agent. */
#include "agent/interpose/program.h"

#include <elf.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/musl.h"
#include "frozen/raw.h"
#include "frozen/runtime_list.h"

/* --- its loader: libc's search leads to the file, which has the path of its loader, or of its interpreter, at its start --- */

#define MAX_START 1024 /* linkers put the path behind the program headers */
#define MAX_SCRIPTS 5  /* one the interpreter of the other (kernel: fs/exec.c, exec_binprm) */

/* By the call by which all programs open files: a system-call filter lets it through. */
static long open_named(const char *name, int flags)
{
	return sf_raw4(SYS_openat, AT_FDCWD, name, flags | O_CLOEXEC, 0);
}

/* As many bytes as there are, and a zero behind them; 0 where it cannot be read. */
static size_t read_start(const char *path, char ret[MAX_START])
{
	long fd = open_named(path, O_RDONLY | O_NONBLOCK | O_NOCTTY), n;

	if (fd < 0)
		return 0;
	n = sf_raw3(SYS_read, fd, ret, MAX_START - 1);
	sf_raw1(SYS_close, fd);
	n = n > 0 ? n : 0;
	ret[n] = 0;
	return (size_t)n;
}

/* The first word behind "#!", in the text itself; NULL: it is no script. */
static const char *interpreter_in(char *start)
{
	char *path;

	if (memcmp(start, "#!", 2) != 0)
		return NULL;
	path = start + 2 + strspn(start + 2, " \t");
	path[strcspn(path, " \t\n")] = 0;
	return path;
}

static bool has_musl(const char *path)
{
	static const char musl[] = "/" SF_MUSL_LOADER;
	char start[MAX_START];
	size_t n = 0;

	/* A path that lies in `start` is opened before that is written again. */
	for (int i = 0; i <= MAX_SCRIPTS && path; i++) {
		n = read_start(path, start);
		path = n > 2 ? interpreter_in(start) : NULL;
	}
	return n > SELFMAG && memcmp(start, ELFMAG, SELFMAG) == 0 && memmem(start, n, musl, strlen(musl));
}

/* The file in the first folder of PATH that has one to execute, as libc takes it. False: none has. */
static bool find(const char *name, char ret[PATH_MAX])
{
	const size_t name_size = strlen(name) + 1;
	size_t size;

	for (const char *folder = getenv("PATH"); folder; folder = folder[size] ? folder + size + 1 : NULL) {
		size = strcspn(folder, ":");
		if (!size || size + 1 + name_size > PATH_MAX)
			continue;
		memcpy(ret, folder, size);
		ret[size] = '/';
		memcpy(ret + size + 1, name, name_size);
		if (sf_raw3(SYS_faccessat, AT_FDCWD, ret, X_OK) == 0)
			return true;
	}
	return false;
}

bool sf_program_is_named(const char *name)
{
	const long fd = open_named(name, O_PATH);

	if (fd >= 0)
		sf_raw1(SYS_close, fd);
	return fd != -EFAULT;
}

bool sf_program_has_musl(const char *name)
{
	char path[PATH_MAX];

	if (!sf_program_is_named(name))
		return false;
	if (strchr(name, '/'))
		return has_musl(name);
	return find(name, path) && has_musl(path);
}

/* --- its environment --- */

#define PRELOAD "LD_PRELOAD="
#define LIBRARY "libstillframe-agent.so"
#define SEPARATORS " :" /* ld.so(8) */

/* Whether the path at `at` names the agent's library. */
static bool is_library(const char *at, size_t size)
{
	const size_t name = sizeof(LIBRARY) - 1;

	return size >= name && memcmp(at + size - name, LIBRARY, name) == 0 && (size == name || at[size - name - 1] == '/');
}

/* Writes LD_PRELOAD without the library; false: nothing is left. */
static bool copy_preload(const char *from, char *to)
{
	size_t used = sizeof(PRELOAD) - 1;
	const char *at = from + used;

	memcpy(to, PRELOAD, used);
	while (*at) {
		const size_t size = strcspn(at, SEPARATORS);

		if (size && !is_library(at, size)) {
			if (to[used - 1] != '=')
				to[used++] = ':';
			memcpy(to + used, at, size);
			used += size;
		}
		at += size + (at[size] != 0);
	}
	to[used] = 0;
	return to[used - 1] != '=';
}

static bool is_preload(const char *word)
{
	return strncmp(word, PRELOAD, sizeof(PRELOAD) - 1) == 0 && strstr(word, LIBRARY);
}

/* A word by which a runtime loads the agent: these two texts, with the library between them or with nothing. */
static bool is_load(const char *word, const char *start, bool has_library, const char *end)
{
	const size_t before = strlen(start), behind = strlen(end), size = strlen(word);

	if (size < before + behind || memcmp(word, start, before) != 0 || memcmp(word + size - behind, end, behind) != 0)
		return false;
	return has_library ? is_library(word + before, size - before - behind) : size == before + behind;
}

#define X(start, has_library, end) || is_load(word, start, has_library, end)
static bool is_list_load(const char *word)
{
	return false SF_LAUNCH_LOADS(X);
}

static bool is_main_load(const char *word)
{
	return false SF_LAUNCH_MAIN_LOADS(X);
}
#undef X

/* Words by which a runtime loads the agent at its start: those of a set are there together. */
#define X(start, has_library, end) +1
static const struct load_set {
	bool (*has)(const char *word);
	size_t n;
} load_sets[] = { { is_list_load, 0 SF_LAUNCH_LOADS(X) }, { is_main_load, 0 SF_LAUNCH_MAIN_LOADS(X) } };
#undef X
#define N_LOAD_SETS (sizeof(load_sets) / sizeof(*load_sets))

static bool is_whole(const struct load_set *set, char *const envp[])
{
	size_t missing = set->n;

	for (; *envp; envp++)
		missing -= missing && set->has(*envp);
	return !missing;
}

static bool is_load_of(const char *word, const bool whole[N_LOAD_SETS])
{
	bool any = false;

	for (size_t i = 0; i < N_LOAD_SETS; i++)
		any |= whole[i] && load_sets[i].has(word);
	return any;
}

bool sf_environment_measure(char *const envp[], const char *variable, struct sf_environment_size *ret)
{
	bool has_variable = false;

	*ret = (struct sf_environment_size){ .n = 1 };
	for (; envp && *envp; envp++, ret->n++) {
		has_variable |= strcmp(*envp, variable) == 0;
		if (is_preload(*envp) && strlen(*envp) >= ret->n_bytes)
			ret->n_bytes = strlen(*envp) + 1;
	}
	return has_variable && ret->n_bytes;
}

void sf_environment_copy(char *const envp[], const char *variable, char **ret, char *text)
{
	bool whole[N_LOAD_SETS];

	for (size_t i = 0; i < N_LOAD_SETS; i++)
		whole[i] = is_whole(&load_sets[i], envp);
	for (; *envp; envp++) {
		if (strcmp(*envp, variable) == 0 || is_load_of(*envp, whole))
			continue;
		if (!is_preload(*envp))
			*ret++ = *envp;
		else if (copy_preload(*envp, text))
			*ret++ = text;
	}
	*ret = NULL;
}

/* --- the memory of a copy --- */

#define FEW_BYTES 2048u
#define REST 8192u /* of the stack, for who is called next */
#define PAGE 4096u

/* The kernel reads a word there, as a futex that it does not wait for. The stack of the first thread grows by that. */
static bool is_there(uintptr_t address)
{
	const struct timespec no_time = { 0 };

	return sf_raw4(SYS_futex, address & ~(uintptr_t)(PAGE - 1), FUTEX_WAIT_PRIVATE, 0, &no_time) != -EFAULT;
}

bool sf_environment_has_room(size_t size)
{
	const uintptr_t here = (uintptr_t)__builtin_frame_address(0);

	if (size <= FEW_BYTES)
		return true;
	for (size_t i = PAGE; i < size + REST + PAGE; i += PAGE) {
		if (i >= here || !is_there(here - i))
			return false;
	}
	return true;
}

void *sf_environment_map(struct sf_environment_memory *memory, size_t size)
{
	const long at = sf_raw6(SYS_mmap, 0, (long)size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (at < 0)
		return NULL;
	*memory = (struct sf_environment_memory){ (void *)at, size };
	return memory->at;
}

void sf_environment_unmap(struct sf_environment_memory *memory)
{
	if (memory->at)
		sf_raw2(SYS_munmap, memory->at, memory->size);
}
