/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Frames whose size is known only at run time: alloca, variable-length arrays, an over-aligned
 * local. Their unwind rules go through the frame pointer or an expression.
 *
 * alloca_vla [spin|pause]
 */
#include <alloca.h>

#include "program.h"

static bool asleep;

static NOINLINE int leaf(const char *bytes, size_t n)
{
	int sum = 0;

	for (size_t i = 0; i < n; i++)
		sum += bytes[i];
	if (asleep) {
		ready();
		stay(true);
	}
	return sum;
}

static NOINLINE int with_alignment(size_t n)
{
	_Alignas(64) volatile char aligned[192];
	int sum;

	memset((char *)aligned, 1, sizeof(aligned));
	sum = leaf((const char *)aligned, n % sizeof(aligned));
	NO_TAIL_CALL();
	return sum + aligned[3];
}

static NOINLINE int with_both(size_t n)
{
	_Alignas(128) volatile char aligned[256];
	char *bytes = alloca(n + 1);
	int sum;

	memset(bytes, 2, n + 1);
	aligned[n % 256] = 1;
	sum = with_alignment(n);
	NO_TAIL_CALL();
	return sum + bytes[n] + aligned[5];
}

static NOINLINE int with_alloca(size_t n)
{
	char *bytes = alloca(n * 16 + 1);
	int sum;

	memset(bytes, 3, n * 16 + 1);
	sum = with_both(n);
	NO_TAIL_CALL();
	return sum + bytes[n];
}

static NOINLINE int with_vla(size_t n)
{
	char bytes[n + 7];
	int sum;

	memset(bytes, 4, n + 7);
	sum = with_alloca(n);
	NO_TAIL_CALL();
	return sum + bytes[n];
}

int main(int argc, char **argv)
{
	asleep = !argument_is(argc, argv, 1, "spin");
	bounded(120);
	if (!asleep)
		ready();
	for (size_t n = 1;; n = n % 4000 + 13)
		KEEP(with_vla(n));
}
