/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The signal chain: the program's own action for our signal, and the delivery of foreign signals to
 * it. Signal-safe. The action is kept in one of several places. A place is written once and then
 * named by `present`; it is used again only after all the others. A reader checks the stamp of the
 * place before and after, in case the place was used again meanwhile.
 */
#include <stdatomic.h>
#include <stddef.h>
#include <string.h>
#include <ucontext.h>

#include "frozen/signal/chain.h"
#include "frozen/signal/interrupted_calls.h"
#include "frozen/raw.h"

#include "frozen/frozen.h"

#define MASK_SIZE sizeof(uint64_t)
#define N_SIGNALS 64
#define ALL UINT64_MAX
#define BIT(signal) (UINT64_C(1) << ((signal) - 1))
#define RESTORER_FLAG 0x04000000u /* SA_RESTORER of asm/signal.h, which libc's headers leave out */

/* --- the record --- */

#define N_PLACES 16u

/* Zero is the default action, which a program has at first. Ticket 0 is never handed out. */
static struct place {
	_Atomic uint64_t stamp;   /* the ticket of what stands here; 0 while it is written */
	_Atomic uint64_t handler, flags, restorer, mask;
} places[N_PLACES];

static _Atomic uint64_t last_ticket, present;

static uint64_t load(const _Atomic uint64_t *from)
{
	return atomic_load_explicit(from, memory_order_relaxed);
}

static void store(_Atomic uint64_t *to, uint64_t value)
{
	atomic_store_explicit(to, value, memory_order_relaxed);
}

/* The ticket of a new place that holds the action. */
static uint64_t write_place(const struct sf_kernel_action *action)
{
	const uint64_t ticket = atomic_fetch_add(&last_ticket, 1) + 1;
	struct place *place = &places[ticket % N_PLACES];

	store(&place->stamp, 0);
	/*
	 * Pairs with the acquire fence in read_place: who sees a new field sees that the stamp is
	 * gone.
	 */
	atomic_thread_fence(memory_order_release);
	store(&place->handler, (uint64_t)(uintptr_t)action->handler);
	store(&place->flags, action->flags);
	store(&place->restorer, (uint64_t)(uintptr_t)action->restorer);
	store(&place->mask, action->mask);
	/* Pairs with the acquire in read_place: the stamp is seen after the fields. */
	atomic_store_explicit(&place->stamp, ticket, memory_order_release);
	return ticket;
}

static bool read_place(uint64_t ticket, struct sf_kernel_action *ret)
{
	const struct place *place = &places[ticket % N_PLACES];

	if (atomic_load_explicit(&place->stamp, memory_order_acquire) != ticket)
		return false;
	ret->handler = (void (*)(int, siginfo_t *, void *))(uintptr_t)load(&place->handler);
	ret->flags = load(&place->flags);
	ret->restorer = (void (*)(void))(uintptr_t)load(&place->restorer);
	ret->mask = load(&place->mask);
	atomic_thread_fence(memory_order_acquire);
	return load(&place->stamp) == ticket;
}

#define MAX_READS 1000

/*
 * A read is repeated only when sixteen changes happened during it. The number of repetitions is
 * limited, so that a thread that changes the action all the time cannot block a reader.
 */
static uint64_t read_present(struct sf_kernel_action *ret)
{
	uint64_t ticket;

	for (unsigned i = 0; i < MAX_READS; i++) {
		ticket = atomic_load(&present);
		if (read_place(ticket, ret))
			return ticket;
	}
	*ret = (struct sf_kernel_action){ .handler = SF_CHAIN_IGNORE };
	return 0;
}

void sf_chain_get(struct sf_kernel_action *ret)
{
	read_present(ret);
}

static bool is_function(const struct sf_kernel_action *action)
{
	return action->handler != SF_CHAIN_DEFAULT && action->handler != SF_CHAIN_IGNORE;
}

/* --- installing --- */

/*
 * Where the kernel returns to from our handler. By its bytes the walker, and every debugger, knows
 * it for a signal's trampoline (frozen/arch_*.c). The `nop`: unwinders look one byte before a
 * return address, and must not find another function there.
 */
void sf_chain_restorer(void);
__asm__(".pushsection .text\n"
	".p2align 4\n"
	"nop\n"
	".hidden sf_chain_restorer\n"
	".globl sf_chain_restorer\n"
	".type sf_chain_restorer, %function\n"
	"sf_chain_restorer:\n"
	SF_HOST_SIGRETURN
	".size sf_chain_restorer, .-sf_chain_restorer\n"
	".popsection\n");

static _Atomic int installed; /* the signal, 0: none */
static sf_signal_fn *_Atomic our_handler;
static _Atomic bool avoids_altstack;
static _Atomic int undisturbed;  /* the signal whose handler ours does not interrupt, 0: none */

static long get_action(int signal, struct sf_kernel_action *ret)
{
	return sf_raw4(SYS_rt_sigaction, signal, NULL, ret, MASK_SIZE);
}

static long set_action(int signal, const struct sf_kernel_action *action)
{
	return sf_raw4(SYS_rt_sigaction, signal, action, NULL, MASK_SIZE);
}

static bool ignored_by_default(int signal)
{
	return signal == SIGCHLD || signal == SIGCONT || signal == SIGURG || signal == SIGWINCH;
}

/* A signal with this action goes nowhere. */
static bool is_dropped(int signal, const struct sf_kernel_action *action)
{
	return action->handler == SF_CHAIN_IGNORE || (action->handler == SF_CHAIN_DEFAULT && ignored_by_default(signal));
}

/*
 * libc changes the actions of these unseen, so they are always blocked. system(3) ignores the first two for a while. The others
 * are for pthread_cancel() and setuid(): a child of posix_spawn() begins with both ignored, and gets handlers for them later
 * (glibc: nptl/nptl-signals.h, sysdeps/unix/sysv/linux/spawni.c).
 */
static bool is_libcs(int signal)
{
	return signal == SIGINT || signal == SIGQUIT || signal == SF_SIGNAL_CANCEL || signal == SF_SIGNAL_SETXID;
}

static bool is_let_in(int signal)
{
	struct sf_kernel_action action;

	if (signal == SIGKILL || signal == SIGSTOP)
		return true; /* the kernel leaves them out of every mask */
	return !is_libcs(signal) && get_action(signal, &action) == 0 && is_dropped(signal, &action);
}

/*
 * Which of these our handler blocks: all, so that no handler of the program's can leave ours by longjmp. But one that would be
 * ignored is left out: blocked, it would be queued, and wake some other thread for nothing, whose
 * system call may fail with EINTR (kernel/signal.c, sig_ignored; seen with SIGCHLD and SIGUSR1).
 */
static uint64_t blocked_of(uint64_t signals)
{
	for (int signal = 1; signal <= N_SIGNALS; signal++) {
		if (signals & BIT(signal) && is_let_in(signal))
			signals &= ~BIT(signal);
	}
	return signals;
}

/* Where the program's own handler would run on the stack below, or break calls off, so does ours. */
static uint64_t flags_of_ours(void)
{
	uint64_t flags = SA_SIGINFO | SA_ONSTACK | SA_RESTART | RESTORER_FLAG;
	struct sf_kernel_action program;

	read_present(&program);
	if (is_function(&program))
		flags &= program.flags | ~(uint64_t)(SA_ONSTACK | SA_RESTART);
	if (atomic_load(&avoids_altstack))
		flags &= ~(uint64_t)SA_ONSTACK;
	return flags;
}

/*
 * Another thread may begin to avoid alternate stacks after the flags were made, and install the handler before this thread
 * does, which would undo it. So the handler is installed once more then.
 */
static long install_with(int signal, uint64_t mask)
{
	struct sf_kernel_action ours = {
		.handler = atomic_load(&our_handler),
		.flags = flags_of_ours(),
		.restorer = sf_chain_restorer,
		.mask = mask,
	};
	const long error = set_action(signal, &ours);

	if (error || !(ours.flags & SA_ONSTACK) || !atomic_load(&avoids_altstack))
		return error;
	ours.flags &= ~(uint64_t)SA_ONSTACK;
	return set_action(signal, &ours);
}

#define MAX_INSTALLS 8 /* while other threads change what is ignored */

/* The same holds for a signal that another thread begins to ignore, or to handle, meanwhile. */
static long install_ours(int signal)
{
	uint64_t mask = blocked_of(ALL), before;
	long error = 0;

	for (unsigned i = 0; i < MAX_INSTALLS; i++) {
		error = install_with(signal, mask);
		before = mask;
		mask = blocked_of(ALL);
		if (error || mask == before)
			break;
	}
	return error;
}

/* Our handler as the kernel has it: a vfork's child has this memory, but actions of its own. False: it is not installed. */
static bool get_ours(struct sf_kernel_action *ret)
{
	const int signal = atomic_load(&installed);

	return signal && get_action(signal, ret) == 0 && ret->handler == atomic_load(&our_handler);
}

bool sf_chain_needs_renewal(int signal)
{
	struct sf_kernel_action ours;

	return signal > 0 && signal <= N_SIGNALS && get_ours(&ours) && is_let_in(signal) != !(ours.mask & BIT(signal));
}

/* Each call installs the handler: that of another thread, which came first, may not have done so yet. */
void sf_chain_avoid_altstack(void)
{
	atomic_store(&avoids_altstack, true);
	sf_chain_renew();
}

/* The handler itself stays, so that the program finds it. */
static void block_in_undisturbed(void)
{
	const int signal = atomic_load(&undisturbed), ours = atomic_load(&installed);
	struct sf_kernel_action action;

	if (!signal || !ours || get_action(signal, &action) != 0 || !is_function(&action) ||
	    !(action.flags & SA_ONSTACK) || action.mask & BIT(ours))
		return;
	action.mask |= BIT(ours);
	set_action(signal, &action);
}

void sf_chain_leave_undisturbed(int signal)
{
	atomic_store(&undisturbed, signal);
	block_in_undisturbed();
}

void sf_chain_renew(void)
{
	struct sf_kernel_action ours;

	if (get_ours(&ours))
		install_ours(atomic_load(&installed));
}

void sf_chain_set(const struct sf_kernel_action *action)
{
	const int signal = atomic_load(&installed);

	atomic_store(&present, write_place(action));
	if (signal)
		install_ours(signal);
}

long sf_chain_install(int signal, sf_signal_fn *handler)
{
	struct sf_kernel_action before = { 0 };
	long error = get_action(signal, &before);

	if (error)
		return error;
	atomic_store(&our_handler, handler);
	/* First the record: from the moment that ours is installed it is needed. */
	if (before.handler != handler)
		atomic_store(&present, write_place(&before));
	error = install_ours(signal);
	if (error == 0)
		atomic_store(&installed, signal);
	block_in_undisturbed();
	return error;
}

bool sf_chain_check(void)
{
	const int signal = atomic_load(&installed);
	struct sf_kernel_action now;

	block_in_undisturbed();
	if (!signal || get_action(signal, &now) != 0)
		return false;
	if (now.handler != atomic_load(&our_handler)) {
		sf_chain_set(&now);
		return true;
	}
	if (blocked_of(~now.mask)) /* those that it lets in, and no more: that is few calls */
		install_ours(signal);
	return false;
}

/* --- delivering --- */

static void set_mask(uint64_t mask)
{
	sf_raw4(SYS_rt_sigprocmask, SIG_SETMASK, &mask, NULL, MASK_SIZE);
}

/*
 * Ends or stops the process as the signal would have. Comes back after a stop, and in a namespace's
 * init.
 */
static void deliver_default(int signal)
{
	const struct sf_kernel_action action = { .handler = SF_CHAIN_DEFAULT };

	if (ignored_by_default(signal))
		return;
	set_action(signal, &action);
	sf_raw3(SYS_tgkill, sf_raw0(SYS_getpid), sf_raw0(SYS_gettid), signal);
	set_mask(~BIT(signal));
	set_mask(UINT64_MAX);
	if (atomic_load(&installed) == signal)
		install_ours(signal);
}

/* SA_RESETHAND: once, whoever is first. */
static void reset(uint64_t ticket)
{
	const struct sf_kernel_action action = { .handler = SF_CHAIN_DEFAULT };

	atomic_compare_exchange_strong(&present, &ticket, write_place(&action));
}

/* The handler may leave by longjmp: nothing of ours is open here. */
static void call(const struct sf_kernel_action *action, int signal, siginfo_t *info,
		 ucontext_t *context)
{
	uint64_t mask;

	memcpy(&mask, &context->uc_sigmask, sizeof(mask));
	mask |= action->mask;
	if (!(action->flags & SA_NODEFER))
		mask |= BIT(signal);
	set_mask(mask);
	/* Also without SA_SIGINFO: the kernel passes all three to every handler. */
	action->handler(signal, info, context);
	set_mask(UINT64_MAX);
}

bool sf_chain_deliver(int signal, siginfo_t *info, void *ucontext)
{
	struct sf_kernel_action action;
	const uint64_t ticket = read_present(&action);

	if (action.handler == SF_CHAIN_IGNORE)
		return false;
	if (action.handler == SF_CHAIN_DEFAULT) {
		deliver_default(signal);
		return false;
	}
	if (action.flags & SA_RESETHAND)
		reset(ticket);
	call(&action, signal, info, ucontext);
	return true;
}
