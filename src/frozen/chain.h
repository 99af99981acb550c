/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The program's own use of the signal that we took: what it installed keeps working. The record of
 * it is replaced by one atomic store of a pointer; a handler that runs meanwhile uses the old one.
 */
#ifndef SF_FROZEN_CHAIN_H
#define SF_FROZEN_CHAIN_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

/* The kernel's struct sigaction (rt_sigaction(2)): not libc's. */
struct sf_kernel_action {
	void (*handler)(int, siginfo_t *, void *);   /* also SIG_DFL, SIG_IGN */
	uint64_t flags;
	void (*restorer)(void);
	uint64_t mask;
};

#define SF_CHAIN_DEFAULT ((void (*)(int, siginfo_t *, void *))(void *)SIG_DFL)
#define SF_CHAIN_IGNORE ((void (*)(int, siginfo_t *, void *))(void *)SIG_IGN)

/*
 * What a signal that is not ours does: as if the program's action were still installed.
 * Signal-safe.
 */
void sf_chain_deliver(int signal, siginfo_t *info, void *ucontext);

/*
 * The program's action as it should see it, and a new one for it. Signal-safe, any thread.
 * Set also changes how ours is installed, where it is (sf_chain_install).
 */
void sf_chain_get(struct sf_kernel_action *ret);
void sf_chain_set(const struct sf_kernel_action *action);

/*
 * Installs our handler for `signal` (all signals blocked while it runs but ignored ones; SA_ONSTACK
 * and SA_RESTART, each unless the program's own action is a handler without), keeps what was there
 * as the program's. 0, or a negated error number. One signal at a time.
 */
long sf_chain_install(int signal);
/*
 * Whether our handler blocks this other signal depends on its action: sf_chain_renew after it was
 * changed installs ours anew. Signal-safe.
 */
bool sf_chain_minds(int signal);
/*
 * The program has alternate stacks that are too small for ours: never with SA_ONSTACK again.
 * Signal-safe.
 */
void sf_chain_avoid_altstack(void);
void sf_chain_renew(void);
/*
 * What is installed now is not ours: takes it as the program's and installs ours again. True if it
 * was so.
 */
bool sf_chain_check(void);
/*
 * Gives the signal back: the program's action is installed. But where that is the default and would
 * end the program, ours stays in front: a signal of ours may still be pending in a thread that
 * blocks it. All others do what they would do anyway.
 */
void sf_chain_remove(void);

#endif
