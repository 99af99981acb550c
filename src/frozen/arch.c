/* SPDX-License-Identifier: Apache-2.0 */
/* The list of architectures. The only choice made at build time is which of them is the host. */
#include <elf.h>
#include <stddef.h>

#include "frozen/arch.h"

#include "frozen/frozen.h"

static const struct sf_arch *const archs[] = {
	&sf_arch_x86_64,
	&sf_arch_aarch64,
};

#if defined(__x86_64__)
#define HOST_MACHINE EM_X86_64
#elif defined(__aarch64__)
#define HOST_MACHINE EM_AARCH64
#else
#define HOST_MACHINE EM_NONE
#endif

const struct sf_arch *sf_arch_by_machine(uint16_t elf_machine)
{
	for (size_t i = 0; i < sizeof(archs) / sizeof(archs[0]); i++) {
		if (archs[i]->elf_machine == elf_machine)
			return archs[i];
	}
	return NULL;
}

const struct sf_arch *sf_arch_host(void)
{
	return sf_arch_by_machine(HOST_MACHINE);
}
