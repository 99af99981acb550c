/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Code that takes the place of other code: a library is unloaded, and another one is loaded where it was, as programs do that
 * look through their plugins.
 *
 * replaced_code FIRST SECOND SECONDS SECONDS      works for so long in spin_in_first of the one, then in spin_in_second of the other
 */
#include <dlfcn.h>

#include "program.h"

typedef void work_fn(int64_t ns);

/* Where its function is. */
static uintptr_t work_in(const char *path, const char *name, int64_t ns)
{
	void *library = dlopen(path, RTLD_NOW);
	work_fn *work = library ? (work_fn *)dlsym(library, name) : NULL;
	const uintptr_t place = (uintptr_t)work;

	if (!work) {
		fprintf(stderr, "%s\n", dlerror());
		exit(2);
	}
	work(ns);
	dlclose(library);
	return place;
}

int main(int argc, char **argv)
{
	const int64_t first_ns = argument(argc, argv, 3, 1) * NS_PER_S, second_ns = argument(argc, argv, 4, 1) * NS_PER_S;
	uintptr_t first, second;

	bounded(60);
	if (argc < 3)
		return 2;
	ready();
	first = work_in(argv[1], "spin_in_first", first_ns);
	second = work_in(argv[2], "spin_in_second", second_ns);
	printf("in %s place\n", first == second ? "one" : "another");
	return 0;
}
