/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as an ELF file: a table that is consistent, or an error, from whatever it says. */
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "unwind/unwind.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	int fd = memfd_create("fuzz", MFD_CLOEXEC);
	struct sf_table table;
	struct sf_error err;
	void *block;
	size_t block_size;

	if (fd < 0 || write(fd, data, size) != (ssize_t)size)
		abort();
	if (sf_unwind_build(fd, &block, &block_size, &err)) {
		if (!sf_table_init(&table, block, block_size))
			abort();
		for (uint32_t i = 0; i < table.header->n_rows; i++)
			sf_table_find(&table, table.header->base + table.rows[i].offset);
		sf_unwind_close(block, block_size);
	} else if (err.code == SF_E_NONE) {
		abort();
	}
	close(fd);
	return 0;
}
