/* SPDX-License-Identifier: Apache-2.0 */
/* The list of architectures. */
#include <stddef.h>

#include "frozen/arch.h"

#include "frozen/frozen.h"

static const struct sf_arch *const archs[] = {
#define X(name) &sf_arch_##name,
	SF_ARCHS(X)
#undef X
};

const struct sf_arch *sf_arch_by_machine(uint16_t elf_machine)
{
	for (size_t i = 0; i < sizeof(archs) / sizeof(archs[0]); i++) {
		if (archs[i]->elf_machine == elf_machine)
			return archs[i];
	}
	return NULL;
}
