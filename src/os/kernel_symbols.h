/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The functions of the running kernel, of its modules and of the BPF programs in it, by their addresses (/proc/kallsyms).
 * Where this user may not see addresses (kernel.kptr_restrict, CAP_SYSLOG) there are none.
 */
#ifndef SF_OS_KERNEL_SYMBOLS_H
#define SF_OS_KERNEL_SYMBOLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/vec.h"

struct sf_kernel_symbol {
	uint64_t address;
	size_t name;          /* offset in `names` */
};

/* Zeroed memory has no symbols. */
struct sf_kernel_symbols {
	SF_VEC(struct sf_kernel_symbol) symbols; /* by address */
	SF_VEC(char) names;                      /* each ends with a zero; a module's function is "name [module]" */
	uint64_t own_start, own_end;             /* the kernel's own code, _stext and _etext; 0: not found */
};

/* Reads all; false: there are none that this user may see, or memory ran out. Takes some 70 ms of CPU time. */
bool sf_kernel_symbols_load(struct sf_kernel_symbols *symbols);
/*
 * Those of the kernel's own code at least. They stay the same as long as the kernel runs, so the first call writes them
 * to the user's cache folder, and later ones read them there in some 3 ms. A user who may not see addresses now gets
 * none.
 */
bool sf_kernel_symbols_load_own(struct sf_kernel_symbols *symbols);
/* Whether this user may see addresses, by the first line of code: the kernel shows all of them to a user, or none. */
bool sf_kernel_symbols_are_shown(void);
/* kernel.kptr_restrict; 0 where it cannot be read. */
int sf_kernel_symbols_hidden(void);
void sf_kernel_symbols_deinit(struct sf_kernel_symbols *symbols);

/*
 * Adds the function of one line, "ffffffff81000000 T name\t[module]". Lines that name no code are left out. False: no
 * memory.
 */
bool sf_kernel_symbols_add(struct sf_kernel_symbols *symbols, const char *line);
/* After the last line. */
void sf_kernel_symbols_sort(struct sf_kernel_symbols *symbols);

/* A function that begins before this address ends there at the latest. After the last line; sort again. False: no memory. */
bool sf_kernel_symbols_end(struct sf_kernel_symbols *symbols, uint64_t address);

/* The function that the address is in; NULL: none, or one that has no name. Valid until deinit. */
const char *sf_kernel_symbols_find(const struct sf_kernel_symbols *symbols, uint64_t address);

/*
 * Whether the address is in the kernel's own code, whose names stay the same as long as it runs. Those of modules and
 * BPF programs come and go.
 */
bool sf_kernel_symbols_is_own(const struct sf_kernel_symbols *symbols, uint64_t address);

#endif
