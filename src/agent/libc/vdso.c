/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds the functions of the vDSO by the loader, which has the vDSO in its list of libraries. libc's
 * own clock_gettime is not called in handlers: a program may have one in front of it (a sanitizer,
 * libfaketime) that takes locks.
 */
#include "agent/libc/vdso.h"

#include <dlfcn.h>

#include "frozen/arch.h"
#include "frozen/raw.h"

static void *find(void *vdso, const char *name)
{
	return vdso && name ? dlsym(vdso, name) : NULL;
}

void sf_agent_find_vdso(void)
{
	void *vdso = dlopen("linux-vdso.so.1", RTLD_LAZY | RTLD_NOLOAD);
	const struct sf_arch *arch = sf_arch_host();

	if (!arch)
		return;
	atomic_store(&sf_raw_vdso.clock, (sf_vdso_clock_fn *)find(vdso, arch->vdso_clock));
	atomic_store(&sf_raw_vdso.cpu, (sf_vdso_cpu_fn *)find(vdso, arch->vdso_cpu));
}
