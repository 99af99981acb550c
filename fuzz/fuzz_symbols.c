/* SPDX-License-Identifier: Apache-2.0 */
/* Names from an ELF file with hostile headers, symbols and DWARF. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "symbols/symbols.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Touches every byte that it is given, so that the sanitizer sees a wrong one. */
static void read_locations(size_t index, const struct sf_location *locations, size_t n, void *arg)
{
	size_t *sum = arg;

	(void)index;
	if (n == 0)
		abort();
	for (size_t i = 0; i < n; i++) {
		const char *texts[] = { locations[i].function, locations[i].linkage,
					locations[i].file };

		if (!*locations[i].function)
			abort();
		for (size_t t = 0; t < 3; t++) {
			for (const char *c = texts[t]; *c; c++)
				*sum += (unsigned char)*c;
		}
	}
}

/* The seeds are linked to 0x1000 and are smaller than 0x400. */
#define N_ADDRESSES 256

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct sf_symbols *symbols;
	uint64_t addresses[N_ADDRESSES];
	size_t sum = 0;
	int fd = memfd_create("fuzz", MFD_CLOEXEC);

	if (fd < 0 || write(fd, data, size) != (ssize_t)size)
		abort();
	for (size_t i = 0; i < N_ADDRESSES; i++)
		addresses[i] = 0x1000 + i * 4;
	if (sf_symbols_open(fd, NULL, true, &symbols, NULL)) {
		sf_symbols_resolve(symbols, addresses, N_ADDRESSES, read_locations, &sum, NULL);
		sf_symbols_close(symbols);
	}
	close(fd);
	return 0;
}
