/* SPDX-License-Identifier: Apache-2.0 */
/*
 * addr2line -a -f -i on src/symbols, for bench/symbols.py and for trying things out:
 * symbolize FILE < addresses. Prints the answers, then time and memory to stderr.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include "base/vec.h"
#include "symbols/symbols.h"

static SF_VEC(uint64_t) addresses;

static void print(size_t index, const struct sf_location *locations, size_t n, void *arg)
{
	(void)arg;
	printf("0x%016" PRIx64 "\n", addresses.items[index]);
	for (size_t i = 0; i < n; i++)
		printf("%s\n%s:%u\n", getenv("LINKAGE") ? locations[i].linkage : locations[i].function, locations[i].file, locations[i].line);
}

static double now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

int main(int argc, char **argv)
{
	int fd = argc == 2 ? open(argv[1], O_RDONLY | O_CLOEXEC) : -1;
	struct sf_symbols *symbols;
	struct rusage usage;
	struct sf_error err;
	uint64_t address;
	double start;

	if (fd < 0) {
		fprintf(stderr, "usage: symbolize FILE < addresses (%s)\n", strerror(errno));
		return 2;
	}
	while (scanf("%" SCNx64, &address) == 1)
		sf_vec_push(&addresses, address);
	start = now();
	if (!sf_symbols_open(fd, argv[1], true, &symbols, &err) ||
	    !sf_symbols_resolve(symbols, addresses.items, addresses.n, print, NULL, &err)) {
		fprintf(stderr, "symbolize: %s\n", err.text);
		return 1;
	}
	sf_symbols_close(symbols);
	getrusage(RUSAGE_SELF, &usage);
	fprintf(stderr, "seconds %.3f kilobytes %ld\n", now() - start, usage.ru_maxrss);
	sf_vec_deinit(&addresses);
	return 0;
}
