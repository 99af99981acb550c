/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program that blocks all signals, works, and looks for those that are pending, of which it then takes one; and works before
 * and after.
 *
 * in_pending NUMBER [SECONDS]: the number says nothing
 */
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "in_spins.h"

#define PAGE 4096

static void look(const char *what)
{
	sigset_t pending;
	uint8_t *page = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	uint32_t *by_number = (uint32_t *)(page + PAGE) - 1; /* the kernel writes as much as is asked for */
	int taken = 0;

	mprotect(page + PAGE, PAGE, PROT_NONE);
	syscall(SYS_rt_sigpending, by_number, sizeof(*by_number));
	sigpending(&pending);
	printf("%s: %x", what, *by_number);
	for (int signal = 1; signal < NSIG; signal++) {
		if (sigismember(&pending, signal) == 1)
			printf(" %d", signal);
	}
	fflush(stdout);
	if (!sigisemptyset(&pending))
		sigwait(&pending, &taken);
	printf(", took %d\n", taken);
}

/* Once more, where the sampler's signal was pending by then: the two are one. */
static void raise_pending(void)
{
	sigset_t pending;

	for (int i = 0; i < 4; i++) {
		raise(SIGPROF);
		sigpending(&pending);
		if (sigismember(&pending, SIGPROF) == 1)
			return;
	}
}

int main(int argc, char **argv)
{
	const int64_t ns = argument(argc, argv, 2, 0.3) * NS_PER_S;
	sigset_t all, before;

	bounded(20);
	spin_before(ns);
	sigfillset(&all);
	sigdelset(&all, SIGALRM); /* of bounded() */
	sigprocmask(SIG_BLOCK, &all, &before);
	burn_ns(100000000);
	look("nothing");
	raise_pending();
	burn_ns(100000000);
	look("to the thread");
	kill(getpid(), SIGPROF);
	burn_ns(100000000);
	look("to the process");
	look("nothing more");
	sigprocmask(SIG_SETMASK, &before, NULL);
	spin_after(ns);
	return 0;
}
