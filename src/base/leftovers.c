/* SPDX-License-Identifier: Apache-2.0 */
/* Removes temporary files when a signal ends the program. remove_all() is a signal handler: it calls signal-safe functions only. */
#include "base/leftovers.h"

#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <unistd.h>

static const char *_Atomic paths[SF_MAX_LEFTOVERS];
static unsigned n_paths;

/* The signals by which people end a command. */
static const int ends[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT };
#define N_ENDS (sizeof(ends) / sizeof(ends[0]))

static void remove_all(int signal_number)
{
	for (size_t i = SF_MAX_LEFTOVERS; i-- > 0;) {
		const char *path = atomic_load(&paths[i]);

		if (path && unlink(path) != 0)
			rmdir(path);
	}
	signal(signal_number, SIG_DFL);
	raise(signal_number);
}

/* Only where the default would end the program. */
static void catch_ends(bool catch)
{
	struct sigaction action;

	for (size_t i = 0; i < N_ENDS; i++) {
		if (sigaction(ends[i], NULL, &action) == 0 && action.sa_handler == (catch ? SIG_DFL : remove_all))
			signal(ends[i], catch ? remove_all : SIG_DFL);
	}
}

static bool replace(const char *before, const char *after)
{
	for (size_t i = 0; i < SF_MAX_LEFTOVERS; i++) {
		if (atomic_load(&paths[i]) == before) {
			atomic_store(&paths[i], after);
			return true;
		}
	}
	return false;
}

void sf_leftover_add(const char *path)
{
	if (replace(NULL, path) && n_paths++ == 0)
		catch_ends(true);
}

void sf_leftover_forget(const char *path)
{
	if (path && replace(path, NULL) && --n_paths == 0)
		catch_ends(false);
}
