/* SPDX-License-Identifier: Apache-2.0 */
/* What all interposers use: the functions that stand behind them, and the rest of the agent. */
#include <dlfcn.h>
#include <stdatomic.h>

#include "agent/interpose/interpose.h"

const struct sf_interpose_hooks *_Atomic sf_interpose_hooks;

static const char *const names[] = {
#define X(name) #name,
	SF_INTERPOSED_FUNCTIONS(X)
#undef X
};

static void *_Atomic functions[SF_N_NEXT];

void *sf_interpose_next(enum sf_interposed which)
{
	return atomic_load(&functions[which]);
}

void *sf_interpose_find(enum sf_interposed which)
{
	if (!sf_interpose_next(which))
		atomic_store(&functions[which], dlsym(RTLD_NEXT, names[which]));
	return sf_interpose_next(which);
}

void sf_interpose_init(void)
{
	for (unsigned i = 0; i < SF_N_NEXT; i++)
		sf_interpose_find((enum sf_interposed)i);
}
