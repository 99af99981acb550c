/* SPDX-License-Identifier: Apache-2.0 */
/* Names of methods from hostile tables of a program by ILC. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "symbols/ilc_methods.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Each name may take as much work as the longest honest one. */
#define MAX_NAMES 16

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint8_t *copy = malloc(size ? size : 1);
	struct sf_ilc_methods methods;
	struct sf_elf elf;
	char buffer[4096];

	if (!copy)
		abort();
	memcpy(copy, data, size);
	if (!sf_elf_open_memory(copy, size, &elf, NULL))
		return 0;
	if (!sf_ilc_methods_read(&elf, &methods))
		abort();
	for (size_t i = 0; i < methods.items.n && i < MAX_NAMES; i++) {
		struct sf_text text = sf_text_in(buffer, sizeof(buffer));

		sf_ilc_put_method(&text, &methods.metadata, &methods.items.items[i]);
		if (!strchr(buffer, '(') && text.left > 1)
			abort();
		sf_ilc_methods_find(&methods, methods.items.items[i].start);
	}
	sf_ilc_methods_deinit(&methods);
	sf_elf_close(&elf);
	return 0;
}
