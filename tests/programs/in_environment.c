/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program with a getenv() of its own, which like a shell's looks at what no other thread may look at. A library is
 * loaded meanwhile, whose tables are looked for.
 *
 * in_environment PLUGIN [SECONDS]
 */
#include "in_program.h"

extern char **environ;
static _Atomic unsigned asked_by_others;

__attribute__((visibility("default"))) char *getenv(const char *name)
{
	size_t length = strlen(name);

	if (gettid() != getpid())
		asked_by_others++;
	for (char **at = environ; at && *at; at++) {
		if (strncmp(*at, name, length) == 0 && (*at)[length] == '=')
			return *at + length + 1;
	}
	return NULL;
}

int main(int argc, char **argv)
{
	int64_t start = now_ns();
	void *library;

	bounded(100);
	burn_ns(NS_PER_S / 10);
	library = argc > 1 ? dlopen(argv[1], RTLD_NOW) : NULL;
	if (!library) {
		printf("no library\n");
		return 1;
	}
	while (lasts(start, argument(argc, argv, 2, 1)))
		burn_ns(NS_PER_S / 100);
	printf("asked by others %u\n", asked_by_others);
	return asked_by_others ? 1 : 0;
}
