/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program that for a while forbids itself to load from odd addresses (the AC flag of x86), and works before and after.
 *
 * in_aligned NUMBER [SECONDS]: the number says nothing
 */
#include "in_spins.h"

/* No function of libc's is called meanwhile: it may load from odd addresses. 256: the compiler may have data in 128 bytes. */
static inline void check(bool on)
{
#if defined(__x86_64__)
	__asm__ volatile("lea -256(%%rsp), %%rsp\n"
			 "pushfq\n"
			 "andl $~0x40000, (%%rsp)\n"
			 "orl %0, (%%rsp)\n"
			 "popfq\n"
			 "lea 256(%%rsp), %%rsp\n"
			 :
			 : "r"(on ? 0x40000 : 0)
			 : "cc", "memory");
#else
	(void)on;
#endif
}

int main(int argc, char **argv)
{
	const int64_t ns = argument(argc, argv, 2, 0.3) * NS_PER_S;

	bounded(60);
	spin_before(ns);
	check(true);
	for (volatile int i = 0; i < 100000000; i++)
		;
	check(false);
	printf("aligned\n");
	spin_after(ns);
	return 0;
}
