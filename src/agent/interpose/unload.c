/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dlclose(), in front of libc's: another library may be loaded where the code of this one was, as by programs that look through
 * their plugins. No walk meets unknown code then, but code with wrong names and rules, until the maps are read again.
 */
#include <dlfcn.h>
#include <stdatomic.h>

#include "agent/interpose/interpose.h"

SF_INTERPOSED int dlclose(void *library)
{
	const struct sf_interpose_hooks *hooks = atomic_load(&sf_interpose_hooks);
	int (*next)(void *) = (int (*)(void *))sf_interpose_find(SF_NEXT_dlclose);
	const int result = next ? next(library) : -1;

	if (!result && hooks)
		hooks->code_gone();
	return result;
}
