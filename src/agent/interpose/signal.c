/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sigaction() and its kin, in front of libc's, and rt_sigaction(2) by number: where the signal is the one that we took, the
 * program sees and changes its own action and not ours (frozen/signal/chain.h). All other signals go
 * straight on. Functions that wait for signals, too: a program that blocks all signals and takes each pending one must not get
 * ours.
 *
 * Signal-safe, as the functions they stand for: once found, libc's function is called by pointer.
 * It is looked for when the agent is loaded; who calls before that gets libc's own name for it.
 *
 * To add one: a function here that says what it installs, a call of it in tests/programs/in_actions.c, and its name in INTERPOSED
 * of tests/e2e/test_agent.py.
 */
#include <dlfcn.h>
#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <time.h>

#include "agent/interpose/interpose.h"
#include "agent/interpose/sampling_signal.h"
#include "frozen/raw.h"
#include "frozen/signal/chain.h"
#include "frozen/signal/handler.h"

/* linux/signal.h: the program never set it itself. */
#define SA_RESTORER_ 0x04000000u
#define KERNEL_SIGSET_SIZE 8
#define NS_PER_S 1000000000

typedef int sigaction_fn(int, const struct sigaction *, struct sigaction *);

extern sigaction_fn __sigaction; /* glibc's own name */

void sf_interpose_signal_init(void)
{
	sigaction_fn *found = (sigaction_fn *)sf_interpose_next(SF_NEXT_sigaction);

	/* Loaded late, or by somebody's dlopen(): the program calls the one that is before us. */
	sf_agent_signal_set_seen((sigaction_fn *)dlsym(RTLD_DEFAULT, "sigaction") != found);
}

static void note_changed(int number)
{
	if (sf_chain_needs_renewal(number))
		sf_chain_renew();
}

static int call_next(int number, const struct sigaction *action, struct sigaction *old)
{
	sigaction_fn *next = (sigaction_fn *)sf_interpose_next(SF_NEXT_sigaction);
	int result = next ? next(number, action, old) : __sigaction(number, action, old);

	if (action)
		note_changed(number);
	return result;
}

#define SA_EXPOSE_TAGBITS_ 0x00000800u
#define SA_HOW (SA_NOCLDSTOP | SA_NOCLDWAIT | SA_SIGINFO | SA_ONSTACK | SA_RESTART | SA_NODEFER | SA_RESETHAND)
#define NEVER_BLOCKED (UINT64_C(1) << (SIGKILL - 1) | UINT64_C(1) << (SIGSTOP - 1))

/* As the kernel keeps it (kernel/signal.c, do_sigaction). */
static struct sf_kernel_action as_kept(const struct sf_kernel_action *action)
{
	struct sf_kernel_action ret = *action;

	ret.flags &= (uint32_t)SA_HOW | SA_EXPOSE_TAGBITS_ | SA_RESTORER_;
	ret.mask &= ~NEVER_BLOCKED;
	return ret;
}

static void change_own(const struct sf_kernel_action *action, struct sf_kernel_action *old)
{
	struct sf_kernel_action before, after;

	/* Before anything is written: both may be the same place. */
	sf_chain_get(&before);
	if (action) {
		after = as_kept(action);
		sf_chain_set(&after);
	}
	if (old)
		*old = before;
}

static void to_kernel(const struct sigaction *action, struct sf_kernel_action *ret)
{
	*ret = (struct sf_kernel_action){
		.handler = action->sa_sigaction,
		.flags = (uint32_t)action->sa_flags & ~SA_RESTORER_,
	};
	memcpy(&ret->mask, &action->sa_mask, sizeof(ret->mask));
}

static void from_kernel(const struct sf_kernel_action *action, struct sigaction *ret)
{
	*ret = (struct sigaction){ 0 };
	ret->sa_sigaction = action->handler;
	ret->sa_flags = (int)((uint32_t)action->flags & ~SA_RESTORER_);
	memcpy(&ret->sa_mask, &action->mask, sizeof(action->mask));
}

/*
 * Whether this is another process than the sampled one. A child of vfork() has our memory, but actions of its own: it must not
 * change what the chain keeps for its parent.
 */
static bool is_apart(void)
{
	return sf_raw0(SYS_getpid) != sf_handler.config.pid;
}

static int call_next_apart(int number, const struct sigaction *action, struct sigaction *old)
{
	const int result = call_next(number, action, old);
	struct sf_kernel_action before;

	if (result == 0 && old && old->sa_sigaction == sf_handler_enter) {
		sf_chain_get(&before);
		from_kernel(&before, old);
	}
	return result;
}

SF_INTERPOSED int sigaction(int number, const struct sigaction *action, struct sigaction *old)
{
	struct sf_kernel_action before, after;

	if (!sf_agent_signal_is_ours(number))
		return call_next(number, action, old);
	if (is_apart())
		return call_next_apart(number, action, old);
	if (action)
		to_kernel(action, &after);
	change_own(action ? &after : NULL, &before);
	if (old)
		from_kernel(&before, old);
	return 0;
}

static bool is_for_own(const struct sf_filter_call *call)
{
	return call->number == SYS_rt_sigaction && call->args[3] == KERNEL_SIGSET_SIZE && sf_agent_signal_is_ours((int)call->args[0]);
}

#define NO_SIGNAL 0

/* As the kernel: what it cannot read changes nothing; what it cannot write it finds when the action has changed. */
static long change_own_by_number(const struct sf_kernel_action *action, struct sf_kernel_action *old)
{
	struct sf_kernel_action before, after;
	long error;

	/* The kernel reads the action first. Then it refuses this signal. */
	if (action && sf_raw4(SYS_rt_sigaction, NO_SIGNAL, action, NULL, KERNEL_SIGSET_SIZE) == -EFAULT)
		return -EFAULT;
	if (action)
		after = *action;
	change_own(action ? &after : NULL, &before);
	error = old ? sf_raw4(SYS_rt_sigaction, sf_handler.config.signal, NULL, old, KERNEL_SIGSET_SIZE) : 0;
	if (old && !error)
		*old = before;
	return error;
}

bool sf_interpose_own_action(const struct sf_filter_call *call, long *result_ret)
{
	if (!is_for_own(call) || is_apart())
		return false;
	*result_ret = change_own_by_number((const struct sf_kernel_action *)call->args[1], (struct sf_kernel_action *)call->args[2]);
	return true;
}

void sf_interpose_action_changed(const struct sf_filter_call *call)
{
	struct sf_kernel_action *old = (struct sf_kernel_action *)call->args[2];

	if (call->number == SYS_rt_sigaction && call->args[1])
		note_changed((int)call->args[0]);
	if (is_for_own(call) && old && old->handler == sf_handler_enter)
		sf_chain_get(old);
}

/* Sets a handler with these flags, as signal() and the related functions do. */
static sighandler_t set_simple(int number, sighandler_t handler, int flags)
{
	struct sigaction action = { 0 }, old;

	if (handler == SIG_ERR) {
		errno = EINVAL;
		return SIG_ERR;
	}
	action.sa_handler = handler;
	action.sa_flags = flags;
	sigemptyset(&action.sa_mask);
	if (!(flags & SA_NODEFER))
		sigaddset(&action.sa_mask, number);
	return sigaction(number, &action, &old) == 0 ? old.sa_handler : SIG_ERR;
}

/* Signals that siginterrupt() said about: signal() then leaves SA_RESTART out (siginterrupt(3)). */
static _Atomic uint64_t interrupting;

/* In old programs only: no header has it any more. */
sighandler_t bsd_signal(int number, sighandler_t handler);

static int bsd_flags(int number)
{
	uint64_t bits = atomic_load_explicit(&interrupting, memory_order_relaxed);

	return number > 0 && number <= 64 && (bits >> (number - 1) & 1) ? 0 : SA_RESTART;
}

SF_INTERPOSED sighandler_t signal(int number, sighandler_t handler)
{
	return set_simple(number, handler, bsd_flags(number));
}

SF_INTERPOSED sighandler_t bsd_signal(int number, sighandler_t handler)
{
	return set_simple(number, handler, bsd_flags(number));
}

SF_INTERPOSED sighandler_t ssignal(int number, sighandler_t handler)
{
	return set_simple(number, handler, bsd_flags(number));
}

SF_INTERPOSED sighandler_t sysv_signal(int number, sighandler_t handler)
{
	return set_simple(number, handler, (int)(SA_RESETHAND | SA_NODEFER));
}

SF_INTERPOSED sighandler_t __sysv_signal(int number, sighandler_t handler)
{
	return set_simple(number, handler, (int)(SA_RESETHAND | SA_NODEFER));
}

SF_INTERPOSED int sigignore(int number)
{
	return set_simple(number, SIG_IGN, 0) == SIG_ERR ? -1 : 0;
}

SF_INTERPOSED int siginterrupt(int number, int interrupt)
{
	struct sigaction action;

	if (sigaction(number, NULL, &action) != 0)
		return -1;
	if (interrupt) {
		atomic_fetch_or(&interrupting, UINT64_C(1) << (number - 1));
		action.sa_flags &= ~SA_RESTART;
	} else {
		atomic_fetch_and(&interrupting, ~(UINT64_C(1) << (number - 1)));
		action.sa_flags |= SA_RESTART;
	}
	return sigaction(number, &action, NULL);
}

/* sigset(3): SIG_HOLD blocks the signal and leaves its action; anything else unblocks it. */
SF_INTERPOSED sighandler_t sigset(int number, sighandler_t handler)
{
	struct sigaction action = { 0 }, old;
	sigset_t set, before;

	sigemptyset(&set);
	if (handler == SIG_ERR || sigaddset(&set, number) != 0) {
		errno = EINVAL;
		return SIG_ERR;
	}
	action.sa_handler = handler;
	sigemptyset(&action.sa_mask);
	if (sigaction(number, handler == SIG_HOLD ? NULL : &action, &old) != 0 ||
	    sigprocmask(handler == SIG_HOLD ? SIG_BLOCK : SIG_UNBLOCK, &set, &before) != 0)
		return SIG_ERR;
	return sigismember(&before, number) ? SIG_HOLD : old.sa_handler;
}

/* --- functions that wait for signals --- */

/*
 * sigwait() and the related functions drop a signal of ours and wait again. A signalfd() for more signals than ours is made
 * without our signal. A program that reads exactly our signal from a signalfd gets our signals, too: they cannot be distinguished
 * before the program has read them. Such a program should select another signal for stillframe (signal=).
 */
typedef int timedwait_fn(const sigset_t *, siginfo_t *, const struct timespec *);
typedef int signalfd_fn(int, const sigset_t *, int);

/* libc's, which is a cancellation point; before the agent's own constructor without it. */
static int wait_once(const sigset_t *set, siginfo_t *info, const struct timespec *time)
{
	timedwait_fn *next = (timedwait_fn *)sf_interpose_next(SF_NEXT_sigtimedwait);

	if (next)
		return next(set, info, time);
	return (int)sf_interpose_result(
		sf_raw4(SYS_rt_sigtimedwait, set, info, time, sizeof(uint64_t)));
}

/* The kernel has taken the time: it is none below zero. One that is too long for this clock is for ever. */
static uint64_t moment_behind(uint64_t start_ns, const struct timespec *time)
{
	const uint64_t seconds = (uint64_t)time->tv_sec;

	return seconds < (UINT64_MAX - start_ns) / NS_PER_S ? start_ns + seconds * NS_PER_S + (uint64_t)time->tv_nsec : UINT64_MAX;
}

/* The rest of a time that began then. */
struct timespec sf_interpose_left(uint64_t start_ns, const struct timespec *time)
{
	const uint64_t until_ns = moment_behind(start_ns, time);
	uint64_t now_ns = sf_raw_now_ns();
	uint64_t left_ns = now_ns < until_ns ? until_ns - now_ns : 0;

	return (struct timespec){ .tv_sec = (time_t)(left_ns / NS_PER_S),
				  .tv_nsec = (long)(left_ns % NS_PER_S) };
}

bool sf_interpose_is_ours(int signal, const siginfo_t *info)
{
	const struct sf_interpose_hooks *hooks = atomic_load(&sf_interpose_hooks);

	return signal > 0 && hooks && sf_agent_signal_is_ours(signal) && hooks->is_sent(info);
}

/* What the kernel may refuse to read is read behind it. */
SF_INTERPOSED int sigtimedwait(const sigset_t *set, siginfo_t *info, const struct timespec *time)
{
	const uint64_t start_ns = sf_raw_now_ns();
	siginfo_t own_info, *into = info ? info : &own_info;
	struct timespec left;
	int signal = wait_once(set, into, time);

	while (sf_interpose_is_ours(signal, into)) {
		if (time)
			left = sf_interpose_left(start_ns, time);
		signal = wait_once(set, into, time ? &left : NULL);
	}
	return signal;
}

SF_INTERPOSED int sigwaitinfo(const sigset_t *set, siginfo_t *info)
{
	return sigtimedwait(set, info, NULL);
}

SF_INTERPOSED int sigwait(const sigset_t *set, int *ret)
{
	int saved = errno, signal, error;

	do
		signal = sigtimedwait(set, NULL, NULL);
	while (signal < 0 && errno == EINTR);
	error = errno;
	errno = saved;
	if (signal < 0)
		return error;
	*ret = signal;
	return 0;
}

static bool is_empty(const sigset_t *set)
{
	for (int signal = 1; signal <= SIGRTMAX; signal++) {
		if (sigismember(set, signal) == 1)
			return false;
	}
	return true;
}

#define NO_WAY (-1) /* of sigprocmask() */

const sigset_t *sf_interpose_signalfd_set(const sigset_t *mask, sigset_t *ret)
{
	const int signal = sf_handler.config.signal;

	/* The kernel reads the set first. Then it refuses this way to use it. */
	if (sf_raw4(SYS_rt_sigprocmask, NO_WAY, mask, NULL, KERNEL_SIGSET_SIZE) != -EINVAL)
		return mask;
	sigemptyset(ret);
	memcpy(ret, mask, KERNEL_SIGSET_SIZE);
	if (sf_agent_signal_is_ours(signal))
		sigdelset(ret, signal);
	return is_empty(ret) ? mask : ret;
}

SF_INTERPOSED int signalfd(int fd, const sigset_t *mask, int flags)
{
	signalfd_fn *next = (signalfd_fn *)sf_interpose_find(SF_NEXT_signalfd);
	sigset_t others;

	if (next)
		return next(fd, sf_interpose_signalfd_set(mask, &others), flags);
	errno = ENOSYS;
	return -1;
}
