/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the kernel's names in a thread of its own, and again where they may have changed. */
#include "session/kernel_names.h"

#include <signal.h>

static void *read_names(void *arg)
{
	struct sf_kernel_names *names = arg;

	sf_kernel_symbols_load(&names->symbols);
	return NULL;
}

/* Signals are for other threads. Where there is no thread, the names are read when they are needed. */
void sf_kernel_names_begin(struct sf_kernel_names *names)
{
	sigset_t all, old;

	if (names->begun || names->symbols.symbols.n)
		return;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	names->begun = pthread_create(&names->reader, NULL, read_names, names) == 0;
	pthread_sigmask(SIG_SETMASK, &old, NULL);
}

static void wait_for_reader(struct sf_kernel_names *names)
{
	if (!names->begun || names->is_read)
		return;
	pthread_join(names->reader, NULL);
	names->is_read = true;
}

const struct sf_kernel_symbols *sf_kernel_names_for(struct sf_kernel_names *names, const uint64_t *addresses, size_t n)
{
	wait_for_reader(names);
	for (size_t i = 0; i < n; i++) {
		if (sf_kernel_symbols_is_own(&names->symbols, addresses[i]))
			continue;
		sf_kernel_symbols_deinit(&names->symbols);
		sf_kernel_symbols_load(&names->symbols);
		break;
	}
	return &names->symbols;
}

void sf_kernel_names_deinit(struct sf_kernel_names *names)
{
	wait_for_reader(names);
	sf_kernel_symbols_deinit(&names->symbols);
	*names = (struct sf_kernel_names){ 0 };
}
