/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program that uses the profiler's signal itself: SIGPROF with setitimer(ITIMER_PROF), as another profiler would,
 * or a real-time signal with numbered signals from a child process. Its handler must be called for
 * exactly its own signals, with its own mask and flags, and see its own action when it asks.
 *
 * in_signals prof|rt before|after SECONDS [plain] [nodefer] [OPTIONS]
 *
 * before: the handler is installed first, then sf_profile_start(OPTIONS) is called.
 */
#include <sys/time.h>
#include <sys/wait.h>

#include "in_program.h"

#define INTERVAL_US 10000
#define ENOUGH 30
#define MAX_NUMBERS (1 << 20)

static int own_signal;
static bool plain, nodefer;
static volatile sig_atomic_t user_ticks; /* of a timer that nobody but the program knows */
static volatile sig_atomic_t last_code, next_number;

/*
 * With SA_NODEFER one call of the handler interrupts another, also in the midst of what an ordinary ++ is made of. Lock-free,
 * so they may be used there.
 */
static _Atomic int calls, foreign, bad_mask, disordered;
static _Atomic uint8_t times_seen[MAX_NUMBERS];

static void check_mask(void)
{
	sigset_t now;

	sigprocmask(SIG_SETMASK, NULL, &now);
	if (!sigismember(&now, SIGUSR2) || sigismember(&now, SIGUSR1) ||
	    sigismember(&now, own_signal) == nodefer)
		bad_mask++;
}

/* One that was interrupted by its follower before it got here is no disorder, so that is looked at without SA_NODEFER. */
static void count_number(int number)
{
	if (number < 0 || number >= MAX_NUMBERS) {
		foreign++;
		return;
	}
	times_seen[number]++;
	if (!nodefer && number != next_number)
		disordered++;
	next_number = number + 1;
}

static void on_info(int signal, siginfo_t *info, void *context)
{
	(void)context;
	calls++;
	check_mask();
	if (signal != own_signal || info->si_code != (own_signal == SIGPROF ? SI_KERNEL : SI_QUEUE)) {
		foreign++;
		last_code = info->si_code;
	} else if (signal != SIGPROF) {
		count_number(info->si_value.sival_int);
	}
}

static void on_plain(int signal)
{
	calls++;
	check_mask();
	if (signal != own_signal)
		foreign++;
}

static void on_user_tick(int signal)
{
	(void)signal;
	user_ticks++;
}

static bool install(void)
{
	const struct sigaction user_tick = { .sa_handler = on_user_tick, .sa_flags = SA_RESTART };
	struct sigaction action = { 0 }, seen;

	sigaction(SIGVTALRM, &user_tick, NULL);
	action.sa_flags = SA_RESTART | (plain ? 0 : SA_SIGINFO) | (nodefer ? SA_NODEFER : 0);
	if (plain)
		action.sa_handler = on_plain;
	else
		action.sa_sigaction = on_info;
	sigemptyset(&action.sa_mask);
	sigaddset(&action.sa_mask, SIGUSR2);
	return sigaction(own_signal, &action, NULL) == 0 && sigaction(own_signal, NULL, &seen) == 0;
}

/* The program must see the action that it installed. */
static bool sees_its_own(void)
{
	struct sigaction seen;

	if (sigaction(own_signal, NULL, &seen) != 0)
		return false;
	return (plain ? seen.sa_handler == on_plain : seen.sa_sigaction == on_info) &&
	       !!(seen.sa_flags & SA_SIGINFO) == !plain && !!(seen.sa_flags & SA_NODEFER) == nodefer &&
	       sigismember(&seen.sa_mask, SIGUSR2) && !sigismember(&seen.sa_mask, SIGUSR1);
}

static int send_numbers(pid_t to, double seconds)
{
	int64_t end = now_ns() + seconds * NS_PER_S;
	int number = 0;

	while ((now_ns() < end || number <= ENOUGH) && number < MAX_NUMBERS && getppid() == to) {
		union sigval value = { .sival_int = number };

		if (sigqueue(to, own_signal, value) == 0)
			number++;
		else
			sleep_ns(1000000);
		sleep_ns(100000);
	}
	return number;
}

/* The state that a handler of somebody else's left behind. Volatile, or the compiler takes errno for what it wrote itself. */
static NOINLINE void spin_between_signals(int64_t end, unsigned *broken_errno, unsigned *left_blocked)
{
	volatile int *error = &errno;
	sigset_t now;

	while (now_ns() < end || (own_signal == SIGPROF && user_ticks < ENOUGH)) {
		*error = 4711;
		for (volatile int i = 0; i < 10000; i++)
			;
		*broken_errno += *error != 4711;
		sigprocmask(SIG_SETMASK, NULL, &now);
		*left_blocked += sigismember(&now, SIGUSR2) || sigismember(&now, own_signal);
	}
}

/*
 * The kernel counts for both timers by its own ticks, which on a busy machine are few: so they are compared with each
 * other. The one also counts what the kernel does for the process; and a signal of this kind that comes while one is
 * pending is one with it (signal(7)).
 */
static bool judge_timer(void)
{
	printf("calls %d of %d due\n", calls, (int)user_ticks);
	return calls >= user_ticks * 0.9 - 1 && calls <= user_ticks * 1.5 + 1;
}

static bool judge_numbers(int sent)
{
	int lost = 0, doubled = 0;

	for (int i = 0; !plain && i < sent; i++) { /* a plain handler sees no numbers */
		lost += times_seen[i] == 0;
		doubled += times_seen[i] > 1;
	}
	printf("sent %d seen %d lost %d doubled %d disordered %d\n", sent, calls, lost, doubled, disordered);
	return calls == sent && lost == 0 && doubled == 0 && disordered == 0 && sent > ENOUGH;
}

static pid_t start_sources(double seconds, int to_parent)
{
	const struct itimerval every = { { 0, INTERVAL_US }, { 0, INTERVAL_US } };
	pid_t parent = getpid(), child;

	if (own_signal == SIGPROF)
		return setitimer(ITIMER_VIRTUAL, &every, NULL) + setitimer(ITIMER_PROF, &every, NULL);
	child = fork();
	if (child == 0) {
		int sent = send_numbers(parent, seconds);

		_exit(write(to_parent, &sent, sizeof(sent)) != sizeof(sent));
	}
	return child;
}

static int receive(const int ends[2], pid_t child)
{
	int sent = -1;

	while (read(ends[0], &sent, sizeof(sent)) < 0 && errno == EINTR)
		;
	while (waitpid(child, NULL, 0) < 0 && errno == EINTR)
		;
	return sent;
}

int main(int argc, char **argv)
{
	bool before = argument_is(argc, argv, 2, "before"), fine, own = true;
	double seconds = argument(argc, argv, 3, 2);
	const char *options = NULL;
	unsigned broken_errno = 0, left_blocked = 0;
	int ends[2];
	pid_t child;

	own_signal = argument_is(argc, argv, 1, "prof") ? SIGPROF : SIGRTMIN + 3;
	for (int i = 4; i < argc; i++) {
		plain |= argument_is(argc, argv, i, "plain");
		nodefer |= argument_is(argc, argv, i, "nodefer");
		if (strchr(argv[i], '='))
			options = argv[i];
	}
	bounded(60 + 10 * seconds);
	if (pipe(ends) != 0 || !install())
		return 2;
	if (before && agent_start(options) != 0) {
		printf("sf_profile_start failed\n");
		return 2;
	}
	own = sees_its_own();
	child = start_sources(seconds, ends[1]);
	if (child < 0)
		return 2;
	spin_between_signals(now_ns() + seconds * NS_PER_S, &broken_errno, &left_blocked);
	fine = own_signal == SIGPROF ? judge_timer() : judge_numbers(receive(ends, child));
	own = own && sees_its_own();
	printf("foreign %d (code %d) bad masks %d bad errno %u left blocked %u sees its own %d\n", foreign,
	       (int)last_code, bad_mask, broken_errno, left_blocked, own);
	return !(fine && own && !foreign && !bad_mask && !broken_errno && !left_blocked);
}
