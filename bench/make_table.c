/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Builds the unwind table of a file, and prints its rows, rules and bytes, and the bytes of memory
 * that it took at most. For bench/tables.py.
 */
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "unwind/unwind.h"

/* Not getrusage: its peak starts with that of the process that forked this one. */
static size_t peak(void)
{
	FILE *file = fopen("/proc/self/status", "re");
	char line[256];
	size_t kilobytes = 0;

	while (file && fgets(line, sizeof(line), file) &&
	       sscanf(line, "VmHWM: %zu", &kilobytes) != 1)
		;
	if (file)
		fclose(file);
	return kilobytes << 10;
}

int main(int argc, char **argv)
{
	const struct sf_table_header *header;
	struct sf_error err;
	void *block;
	size_t size;
	int fd = argc == 2 ? open(argv[1], O_RDONLY | O_CLOEXEC) : -1;

	if (fd < 0 || !sf_unwind_build(fd, &block, &size, &err)) {
		fprintf(stderr, "make_table: %s\n", fd < 0 ? "give it one file" : err.text);
		return 1;
	}
	header = block;
	printf("%u %u %zu %zu\n", header->n_rows, header->n_rules, size, peak());
	sf_unwind_close(block, size);
	close(fd);
	return 0;
}
