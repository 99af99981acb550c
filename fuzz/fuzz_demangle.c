/* SPDX-License-Identifier: Apache-2.0 */
/* Hostile mangled names: no crash, no endless work, always a name. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "symbols/ilc_names.h"
#include "symbols/symbols.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *name = malloc(size + 1), *readable;

	if (!name)
		abort();
	memcpy(name, data, size);
	name[size] = 0;
	readable = sf_demangle(name);
	if (!readable || (*name && !*readable))
		abort();
	free(readable);
	readable = sf_ilc_name(name, "Demo.App");
	if (!readable || (*name && !*readable))
		abort();
	free(readable);
	free(name);
	return 0;
}
