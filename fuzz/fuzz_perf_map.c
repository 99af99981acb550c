/* SPDX-License-Identifier: Apache-2.0 */
/* Names from a hostile perf map. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "symbols/perf_map.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const uint64_t addresses[] = { 0x1000, 0, UINT64_MAX, 0x7f031e7c8400, 0x1010, 0x1000, 0xffffffffffffff00 };
#define N_ADDRESSES (sizeof(addresses) / sizeof(addresses[0]))

static void on_location(size_t index, const struct sf_location *locations, size_t n, void *arg)
{
	unsigned *answers = arg;

	if (index >= N_ADDRESSES || n != 1 || !*locations->function || strlen(locations->function) > 4096 || answers[index]++)
		abort();
}

/* Nothing ends the text. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *copy = malloc(size ? size : 1);
	unsigned answers[N_ADDRESSES] = { 0 };

	if (!copy)
		abort();
	memcpy(copy, data, size);
	if (!sf_perf_map_find(copy, size, addresses, N_ADDRESSES, on_location, answers))
		abort();
	free(copy);
	return 0;
}
