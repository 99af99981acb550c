/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the kernel's names in a thread of its own, and again where they may have changed. */
#include "session/kernel_names.h"

#include "os/quiet_thread.h"

static void *read_names(void *arg)
{
	struct sf_kernel_names *names = arg;

	sf_kernel_symbols_load_own(&names->symbols);
	return NULL;
}

/* Where there is no thread, the names are read when they are needed. */
void sf_kernel_names_begin(struct sf_kernel_names *names)
{
	if (!names->begun && !names->symbols.symbols.n)
		names->begun = sf_quiet_thread_start(&names->reader, read_names, names);
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
