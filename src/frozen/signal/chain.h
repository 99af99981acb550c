/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The signal chain: the program's own action for the signal that stillframe uses keeps working. The
 * record of that action is replaced by one atomic store. A handler that runs at that moment uses the
 * old record.
 */
#ifndef SF_FROZEN_SIGNAL_CHAIN_H
#define SF_FROZEN_SIGNAL_CHAIN_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

typedef void sf_signal_fn(int signal, siginfo_t *info, void *ucontext);

/* The kernel's struct sigaction (rt_sigaction(2)): not libc's. */
struct sf_kernel_action {
	sf_signal_fn *handler;   /* also SIG_DFL, SIG_IGN */
	uint64_t flags;
	void (*restorer)(void);
	uint64_t mask;
};

#define SF_CHAIN_DEFAULT ((sf_signal_fn *)(void *)SIG_DFL)
#define SF_CHAIN_IGNORE ((sf_signal_fn *)(void *)SIG_IGN)

/*
 * Delivers a signal that is not ours, as if the program's action were still installed. True: a handler of the program's was
 * called, and has returned. Signal-safe.
 */
bool sf_chain_deliver(int signal, siginfo_t *info, void *ucontext);

/*
 * Reads and sets the program's action, as the program's sigaction() sees it. Signal-safe, any thread.
 * If our handler is installed, `set` also updates its flags and mask (sf_chain_install).
 */
void sf_chain_get(struct sf_kernel_action *ret);
void sf_chain_set(const struct sf_kernel_action *action);

/*
 * Installs `handler`, which is ours from now on, for `signal`, and keeps the installed action as the program's. The handler
 * blocks all signals that are not ignored. It has SA_ONSTACK and SA_RESTART, each unless the program's
 * own action is a handler without that flag. Returns 0 or a negated error number. One signal at a time.
 */
long sf_chain_install(int signal, sf_signal_fn *handler);
/*
 * Whether our handler's mask is out of date after a change of this other signal's action. If so, sf_chain_renew must
 * be called; it installs our handler again. Signal-safe.
 */
bool sf_chain_needs_renewal(int signal);
/*
 * Called when the program has an alternate stack that is too small for our handler: from then on
 * the handler is installed without SA_ONSTACK. Signal-safe.
 */
void sf_chain_avoid_altstack(void);
/*
 * For a program whose handler of this signal goes on elsewhere while its frames on the alternate stack are in use: our handler
 * would begin above these frames and overwrite them. From now on the program's handler runs with our signal blocked, if it
 * runs on an alternate stack. A thread that leaves it other than by returning keeps our signal blocked, and is counted as deaf.
 * sf_chain_check does the same for a handler that the program installs later. Signal-safe.
 */
void sf_chain_leave_undisturbed(int signal);
void sf_chain_renew(void);
/*
 * If another handler than ours is installed: keeps it as the program's action, installs ours again,
 * and returns true. Else ours begins to block those signals that have got a handler unseen.
 */
bool sf_chain_check(void);
#endif
