/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lives in the procedure linkage table: built with -z lazy and without inlined string functions, it
 * calls tiny library functions in a loop, and loads a lazily bound library again and again so that
 * the resolver (_dl_runtime_resolve) runs too. Both lack ordinary unwind rules.
 *
 * plt_lazy PLUGIN
 */
#include <dlfcn.h>
#include <stdlib.h>

#include "program.h"

static NOINLINE int call_through_plt(int n)
{
	int sum = 0;

	for (int i = 0; i < n; i++)
		sum += abs(i) + (int)labs(i) + ffs(i);
	return sum;
}

static NOINLINE void resolve_again(const char *path)
{
	void *library = dlopen(path, RTLD_LAZY);
	int (*work)(int);

	if (library == NULL) {
		fprintf(stderr, "%s\n", dlerror());
		exit(1);
	}
	work = (int (*)(int))dlsym(library, "plugin_work");
	KEEP(work(10));
	dlclose(library);
}

int main(int argc, char **argv)
{
	if (argc < 2)
		return 2;
	bounded(120);
	ready();
	for (;;) {
		KEEP(call_through_plt(20000));
		resolve_again(argv[1]);
	}
}
