/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The program's own action for our signal, behind our handler: it must find everything as if ours were not there.
 * Cases that can end or confuse a process are tried in a child.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>
#include <cmocka.h>

#include "asleep.h"
#include "frozen/signal/chain.h"
#include "frozen/signal/handler.h"
#include "frozen/raw.h"

#define OURS SIGPROF
#define RESTORER_FLAG 0x04000000u

static volatile sig_atomic_t n_calls, last_signal, has_info, has_context, depth, max_depth;
static uint64_t seen_mask;
static volatile int sent_value;
static sigjmp_buf jump;

static void note_mask(void)
{
	sigset_t now;

	sigprocmask(SIG_SETMASK, NULL, &now);
	memcpy(&seen_mask, &now, sizeof(seen_mask));
}

static void plain(int signal)
{
	n_calls++;
	last_signal = signal;
	note_mask();
}

static void with_info(int signal, siginfo_t *info, void *context)
{
	plain(signal);
	has_info = info->si_pid == getpid() && info->si_signo == OURS;
	sent_value = info->si_value.sival_int;
	has_context = ((ucontext_t *)context)->uc_mcontext.gregs[REG_RIP] != 0;
}

/* Raises itself once while it runs. */
static void nested(int signal)
{
	if (++depth > max_depth)
		max_depth = depth;
	if (n_calls++ == 0)
		raise(signal);
	depth--;
}

static void jumps(int signal)
{
	n_calls++;
	(void)signal;
	siglongjmp(jump, 1);
}

/* As a program without knowledge of us. */
static void set_action(void (*handler)(int), int flags, int masked)
{
	struct sigaction action = { .sa_handler = handler, .sa_flags = flags };

	sigemptyset(&action.sa_mask);
	if (masked)
		sigaddset(&action.sa_mask, masked);
	assert_int_equal(sigaction(OURS, &action, NULL), 0);
	n_calls = depth = max_depth = has_info = has_context = 0;
}

static struct sf_kernel_action kernel_action(void)
{
	struct sf_kernel_action action = { 0 };

	assert_int_equal(sf_raw4(SYS_rt_sigaction, OURS, NULL, &action, 8), 0);
	return action;
}

static void put_in_front(void)
{
	assert_int_equal(sf_chain_install(OURS, sf_handler_enter), 0);
	assert_true(kernel_action().handler == sf_handler_enter);
}

static uint64_t bit(int signal)
{
	return UINT64_C(1) << (signal - 1);
}

static int fresh(void **state)
{
	(void)state;
	sf_handler.config.signal = OURS;
	sf_handler.config.cookie = 0x5157;
	sf_handler.config.pid = getpid();
	return 0;
}

/* Gives the signal back, whatever the test left. */
static int give_back(void **state)
{
	struct sf_kernel_action ignore = { .handler = SF_CHAIN_IGNORE };

	(void)state;
	sf_chain_set(&ignore);
	signal(OURS, SIG_DFL);
	return 0;
}

static void test_how_ours_is_installed(void **state)
{
	struct sf_kernel_action action;

	(void)state;
	for (int number = 1; number <= SIGRTMAX; number++) /* whoever runs this may ignore some */
		signal(number, SIG_DFL);
	put_in_front();
	action = kernel_action();
	assert_int_equal(action.flags & ~(uint64_t)RESTORER_FLAG, SA_SIGINFO | SA_ONSTACK | SA_RESTART);
	assert_int_equal(action.mask | bit(SIGKILL) | bit(SIGSTOP),
			 ~(bit(SIGCHLD) | bit(SIGCONT) | bit(SIGURG) | bit(SIGWINCH)));
#ifdef __x86_64__
	assert_memory_equal((const void *)(uintptr_t)action.restorer,
			    "\x48\xc7\xc0\x0f\x00\x00\x00\x0f\x05", 9);
#endif
}

static void do_nothing(int signal)
{
	(void)signal;
}

/* As the interposers do after the change. */
static bool is_blocked_with(int number, void (*handler)(int))
{
	signal(number, handler);
	if (sf_chain_needs_renewal(number))
		sf_chain_renew();
	assert_false(sf_chain_needs_renewal(number));
	return kernel_action().mask & bit(number);
}

/* An ignored signal is not queued; a handler could leave ours by longjmp. */
static void test_blocked_unless_ignored(void **state)
{
	const int signals[] = { SIGCHLD, SIGUSR1, SIGHUP, SIGRTMIN + 5 };

	(void)state;
	put_in_front();
	for (unsigned i = 0; i < sizeof(signals) / sizeof(signals[0]); i++) {
		assert_true(is_blocked_with(signals[i], do_nothing));
		assert_false(is_blocked_with(signals[i], SIG_IGN));
		assert_int_equal(is_blocked_with(signals[i], SIG_DFL), signals[i] != SIGCHLD);
	}
	signal(SIGUSR1, SIG_IGN);
	put_in_front();
	assert_false(kernel_action().mask & bit(SIGUSR1));
	signal(SIGUSR1, do_nothing); /* unseen */
	assert_false(sf_chain_check());
	assert_true(kernel_action().mask & bit(SIGUSR1));
	signal(SIGUSR1, SIG_DFL);
}

/* Such a child has the memory of its parent, but actions of its own. */
static void test_a_child_of_vfork_changes_its_own_action(void **state)
{
	int status;
	pid_t child;

	(void)state;
	put_in_front();
	assert_false(is_blocked_with(SIGUSR1, SIG_IGN));
	child = vfork();
	if (child == 0)
		_exit(is_blocked_with(SIGUSR1, SIG_DFL) ? 0 : 1);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	assert_false(kernel_action().mask & bit(SIGUSR1));
	assert_true(is_blocked_with(SIGUSR1, do_nothing));
	signal(SIGUSR1, SIG_DFL);
}

/* system(3) ignores them for a while, and its caller's handlers are there again without a sign. */
static void test_two_are_always_blocked(void **state)
{
	(void)state;
	put_in_front();
	assert_true(is_blocked_with(SIGINT, SIG_IGN));
	assert_true(is_blocked_with(SIGQUIT, SIG_IGN));
	signal(SIGINT, SIG_DFL);
	signal(SIGQUIT, SIG_DFL);
}

/* A child of posix_spawn() begins with those of pthread_cancel() and setuid() ignored. glibc's own functions refuse to set them. */
static void test_libcs_own_are_always_blocked(void **state)
{
	const struct sf_kernel_action ignore = { .handler = SF_CHAIN_IGNORE }, none = { .handler = SF_CHAIN_DEFAULT };

	(void)state;
	for (int number = 32; number < 34; number++)
		assert_int_equal(syscall(SYS_rt_sigaction, number, &ignore, NULL, 8), 0);
	put_in_front();
	assert_int_equal(kernel_action().mask >> 31 & 3, 3);
	for (int number = 32; number < 34; number++)
		assert_int_equal(syscall(SYS_rt_sigaction, number, &none, NULL, 8), 0);
}

static void test_flags_follow_the_program(void **state)
{
	static const struct {
		int own;
		uint64_t ours;
	} cases[] = {
		{ 0, 0 },
		{ SA_RESTART, SA_RESTART },
		{ SA_ONSTACK, SA_ONSTACK },
		{ SA_RESTART | SA_ONSTACK | SA_NODEFER, SA_RESTART | SA_ONSTACK },
	};
	struct sf_kernel_action own;

	(void)state;
	for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		set_action(plain, cases[i].own, 0);
		put_in_front();
		assert_int_equal(kernel_action().flags & ~(uint64_t)RESTORER_FLAG,
				 SA_SIGINFO | cases[i].ours);
		sf_chain_get(&own);
		assert_int_equal(own.flags & ~(uint64_t)RESTORER_FLAG, cases[i].own);
	}
	own = (struct sf_kernel_action){ .handler = SF_CHAIN_IGNORE };
	sf_chain_set(&own);
	assert_int_equal(kernel_action().flags & ~(uint64_t)RESTORER_FLAG,
			 SA_SIGINFO | SA_ONSTACK | SA_RESTART);
}

static void test_a_plain_handler(void **state)
{
	const uint64_t before = sf_handler.counts.foreign;

	(void)state;
	set_action(plain, SA_RESTART, SIGUSR1);
	put_in_front();
	errno = 77;
	raise(OURS);
	assert_int_equal(errno, 77);
	assert_int_equal(n_calls, 1);
	assert_int_equal(last_signal, OURS);
	assert_int_equal(seen_mask, bit(OURS) | bit(SIGUSR1));
	note_mask();
	assert_int_equal(seen_mask, 0);
	assert_int_equal(sf_handler.counts.foreign, before + 1);
}

static void test_siginfo(void **state)
{
	struct sigaction action = { .sa_sigaction = with_info, .sa_flags = SA_SIGINFO | SA_NODEFER };
	const union sigval value = { .sival_int = 4711 };

	(void)state;
	sigemptyset(&action.sa_mask);
	set_action(plain, 0, 0);
	assert_int_equal(sigaction(OURS, &action, NULL), 0);
	put_in_front();
	assert_int_equal(sigqueue(getpid(), OURS, value), 0);
	assert_int_equal(n_calls, 1);
	assert_true(has_info && has_context);
	assert_int_equal(sent_value, 4711);
	assert_int_equal(seen_mask, 0);
}

/* Signals that the thread has blocked stay blocked, in the handler and after it. */
static void test_the_threads_mask(void **state)
{
	sigset_t blocked;

	(void)state;
	set_action(plain, 0, 0);
	put_in_front();
	sigemptyset(&blocked);
	sigaddset(&blocked, SIGUSR2);
	sigprocmask(SIG_BLOCK, &blocked, NULL);
	raise(OURS);
	assert_int_equal(seen_mask, bit(OURS) | bit(SIGUSR2));
	note_mask();
	assert_int_equal(seen_mask, bit(SIGUSR2));
	sigprocmask(SIG_UNBLOCK, &blocked, NULL);
}

static void test_nesting(void **state)
{
	(void)state;
	set_action(nested, 0, 0);
	put_in_front();
	raise(OURS);
	assert_int_equal(n_calls, 2);
	assert_int_equal(max_depth, 1);
	set_action(nested, SA_NODEFER, 0);
	put_in_front();
	raise(OURS);
	assert_int_equal(n_calls, 2);
	assert_int_equal(max_depth, 2);
}

static void test_jumping_out(void **state)
{
	(void)state;
	set_action(jumps, 0, 0);
	put_in_front();
	for (volatile int i = 0; i < 3; i++) {
		if (sigsetjmp(jump, 1) == 0)
			raise(OURS);
		assert_int_equal(n_calls, i + 1);
		note_mask();
		assert_int_equal(seen_mask, 0);
	}
}

static void test_ignored(void **state)
{
	(void)state;
	set_action(SIG_IGN, 0, 0);
	put_in_front();
	for (int i = 0; i < 3; i++)
		raise(OURS);
	assert_int_equal(n_calls, 0);
}

/* A program that sets another handler without our knowing, as a static call would. */
static void test_check(void **state)
{
	(void)state;
	put_in_front();
	assert_false(sf_chain_check());
	set_action(plain, 0, 0);
	assert_true(sf_chain_check());
	assert_true(kernel_action().handler == sf_handler_enter);
	assert_false(sf_chain_check());
	raise(OURS);
	assert_int_equal(n_calls, 1);
}

static void *change_often(void *arg)
{
	const struct sf_kernel_action actions[] = {
		{ .handler = (void (*)(int, siginfo_t *, void *))(void *)plain, .mask = 1, .flags = 1 },
		{ .handler = SF_CHAIN_IGNORE, .mask = 2, .flags = 2 },
	};

	(void)arg;
	for (unsigned i = 0; i < 100000; i++)
		sf_chain_set(&actions[i % 2]);
	return NULL;
}

/* Never half of one and half of the other. */
static void test_two_that_change_it(void **state)
{
	struct sf_kernel_action action = { .handler = SF_CHAIN_IGNORE, .mask = 2, .flags = 2 };
	pthread_t threads[2];

	(void)state;
	sf_chain_set(&action);
	for (unsigned i = 0; i < 2; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, change_often, NULL), 0);
	for (unsigned i = 0; i < 100000; i++) {
		sf_chain_get(&action);
		assert_int_equal(action.mask, action.flags);
		assert_int_equal(action.mask, action.handler == SF_CHAIN_IGNORE ? 2 : 1);
	}
	for (unsigned i = 0; i < 2; i++)
		assert_int_equal(pthread_join(threads[i], NULL), 0);
}

/* --- in a child --- */

static int in_child(void (*what)(void))
{
	const struct rlimit cpu_time = { 5, 5 }; /* seconds: then it is killed, whatever it does */
	const pid_t child = fork();
	int status = 0;

	if (child == 0) {
		sf_handler.config.pid = getpid();
		setrlimit(RLIMIT_CPU, &cpu_time);
		alarm(120);
		what();
		_exit(42);
	}
	assert_true(child > 0 && waitpid(child, &status, 0) == child);
	return status;
}

static void raise_default(void)
{
	signal(OURS, SIG_DFL);
	if (sf_chain_install(OURS, sf_handler_enter) == 0)
		raise(OURS);
}

static void test_the_default_kills(void **state)
{
	const int status = in_child(raise_default);

	(void)state;
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == OURS);
}

static void raise_twice(void)
{
	set_action(plain, SA_RESETHAND, 0);
	if (sf_chain_install(OURS, sf_handler_enter) != 0)
		_exit(1);
	raise(OURS);
	if (n_calls != 1)
		_exit(2);
	raise(OURS);
}

static void test_resethand(void **state)
{
	const int status = in_child(raise_twice);

	(void)state;
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == OURS);
}

/* A tick of ours that comes after all was given back, from a thread that had blocked the signal. */
static void tick_late(void)
{
	const union sigval value = {
		.sival_ptr = (void *)(uintptr_t)sf_handler_value(sf_handler.config.cookie, SF_NO_SLOT, 0),
	};

	signal(OURS, SIG_DFL);
	if (sf_chain_install(OURS, sf_handler_enter) != 0)
		_exit(1);
	sigqueue(getpid(), OURS, value);
}

static void test_a_late_tick_does_not_kill(void **state)
{
	const int status = in_child(tick_late);

	(void)state;
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 42);
}

/* But the program's own signal does, after we have gone as before. */
static void raise_late(void)
{
	signal(OURS, SIG_DFL);
	if (sf_chain_install(OURS, sf_handler_enter) != 0)
		_exit(1);
	raise(OURS);
}

static void test_the_default_kills_afterwards(void **state)
{
	const int status = in_child(raise_late);

	(void)state;
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == OURS);
}

/* read() goes on or fails, as the program has asked for. */
static void read_alone(int flags)
{
	int ends[2];
	const pid_t parent = getpid();
	char byte;

	set_action(plain, flags, 0);
	if (sf_chain_install(OURS, sf_handler_enter) != 0 || pipe(ends) != 0)
		_exit(1);
	if (fork() == 0) {
		/* Ten signals while it reads, and then the byte. */
		for (int i = 0; i < 10; i++) {
			wait_until_asleep(parent);
			kill(parent, OURS);
		}
		if (write(ends[1], "x", 1) != 1)
			_exit(1);
		_exit(0);
	}
	if (read(ends[0], &byte, 1) == 1)
		_exit(n_calls == 10 ? 10 : 12);
	_exit(errno == EINTR ? 11 : 12);
}

static void read_with_restart(void)
{
	read_alone(SA_RESTART);
}

static void read_without(void)
{
	read_alone(0);
}

static void test_restart(void **state)
{
	(void)state;
	assert_int_equal(WEXITSTATUS(in_child(read_with_restart)), 10);
	assert_int_equal(WEXITSTATUS(in_child(read_without)), 11);
}

static void act_on(int signal, int flags)
{
	struct sigaction action = { .sa_handler = do_nothing, .sa_flags = flags };

	assert_int_equal(sigaction(signal, &action, NULL), 0);
}

static bool runs_with_ours_blocked(int signal)
{
	struct sigaction now;

	assert_int_equal(sigaction(signal, NULL, &now), 0);
	assert_ptr_equal(now.sa_handler, do_nothing);
	return sigismember(&now.sa_mask, OURS);
}

/* A handler whose frames stay on the alternate stack, also one that is installed later; others are left as they are. */
static void test_an_undisturbed_handler(void **state)
{
	(void)state;
	act_on(SIGUSR2, SA_ONSTACK);
	act_on(SIGBUS, SA_ONSTACK);
	assert_false(runs_with_ours_blocked(SIGUSR2));
	put_in_front();
	sf_chain_leave_undisturbed(SIGUSR2);
	assert_true(runs_with_ours_blocked(SIGUSR2));
	assert_false(runs_with_ours_blocked(SIGBUS));
	act_on(SIGUSR2, 0);
	sf_chain_check();
	assert_false(runs_with_ours_blocked(SIGUSR2));
	act_on(SIGUSR2, SA_ONSTACK);
	sf_chain_check();
	assert_true(runs_with_ours_blocked(SIGUSR2));
	sf_chain_leave_undisturbed(0);
	signal(SIGUSR2, SIG_DFL);
	signal(SIGBUS, SIG_DFL);
}

/* What the kernel does from now on where the calling thread sets an action for our signal. */
static void filter_installing(uint32_t what)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_rt_sigaction, 0, 5),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[0])),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, OURS, 0, 3),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[1])),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 0, 1, 0),
		BPF_STMT(BPF_RET | BPF_K, what),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	const struct sock_fprog filter = { sizeof(code) / sizeof(code[0]), code };

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter))
		_exit(20);
}

static bool ours_is_on_altstacks(void)
{
	const struct sf_kernel_action action = kernel_action();

	return action.handler == sf_handler_enter && action.flags & SA_ONSTACK;
}

/* Stands for a thread that has begun the change, and has no CPU before it installs the handler. */
static void *avoid_in_vain(void *arg)
{
	(void)arg;
	filter_installing(SECCOMP_RET_ERRNO | EAGAIN);
	sf_chain_avoid_altstack();
	return NULL;
}

static void avoid_after_another(void)
{
	pthread_t other;

	if (sf_chain_install(OURS, sf_handler_enter) || pthread_create(&other, NULL, avoid_in_vain, NULL) || pthread_join(other, NULL))
		_exit(21);
	if (!ours_is_on_altstacks())
		_exit(22);
	sf_chain_avoid_altstack();
	_exit(ours_is_on_altstacks() ? 23 : 10);
}

static int requests[2], answers[2]; /* pipes; what is in them are addresses of registers */
static void (*change)(void);

/* Makes the change in the middle of another thread's call that installs the handler, and then makes that call for it. */
static void *change_in_between(void *arg)
{
	greg_t *regs;

	(void)arg;
	while (read(requests[0], &regs, sizeof(regs)) == sizeof(regs)) {
		change();
		regs[REG_RAX] = sf_raw4(SYS_rt_sigaction, regs[REG_RDI], regs[REG_RSI], regs[REG_RDX], regs[REG_R10]);
		if (write(answers[1], &regs, sizeof(regs)) != sizeof(regs))
			_exit(24);
	}
	return NULL;
}

static void on_installing(int signal, siginfo_t *info, void *context)
{
	greg_t *regs = ((ucontext_t *)context)->uc_mcontext.gregs;

	(void)signal;
	(void)info;
	if (write(requests[1], &regs, sizeof(regs)) != sizeof(regs) || read(answers[0], &regs, sizeof(regs)) != sizeof(regs))
		_exit(25);
}

static void renew_while_another(void (*makes_change)(void))
{
	struct sigaction action = { .sa_sigaction = on_installing, .sa_flags = SA_SIGINFO };
	pthread_t other;

	change = makes_change;
	if (pipe(requests) || pipe(answers) || sigaction(SIGSYS, &action, NULL) || sf_chain_install(OURS, sf_handler_enter) ||
	    pthread_create(&other, NULL, change_in_between, NULL))
		_exit(21);
	if (!ours_is_on_altstacks() || !(kernel_action().mask & bit(SIGUSR1)))
		_exit(22);
	filter_installing(SECCOMP_RET_TRAP);
	sf_chain_renew();
}

static void avoid_during_another(void)
{
	renew_while_another(sf_chain_avoid_altstack);
	_exit(ours_is_on_altstacks() ? 23 : 10);
}

static void ignore_one(void)
{
	signal(SIGUSR1, SIG_IGN);
	if (sf_chain_needs_renewal(SIGUSR1))
		sf_chain_renew();
}

static void ignore_during_another(void)
{
	renew_while_another(ignore_one);
	_exit(kernel_action().mask & bit(SIGUSR1) ? 23 : 10);
}

/* A thread takes its small alternate stack when the function returns. So the handler is off such stacks by then, and stays so. */
static void test_altstacks_are_avoided_beside_other_threads(void **state)
{
	(void)state;
	assert_int_equal(WEXITSTATUS(in_child(avoid_after_another)), 10);
	assert_int_equal(WEXITSTATUS(in_child(avoid_during_another)), 10);
}

/* The last handler to be installed was made before the change. */
static void test_what_is_ignored_changes_beside_other_threads(void **state)
{
	(void)state;
	assert_int_equal(WEXITSTATUS(in_child(ignore_during_another)), 10);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, fresh, give_back)
	const struct CMUnitTest tests[] = {
		TEST(test_how_ours_is_installed),
		TEST(test_blocked_unless_ignored),
		TEST(test_a_child_of_vfork_changes_its_own_action),
		TEST(test_two_are_always_blocked),
		TEST(test_libcs_own_are_always_blocked),
		TEST(test_flags_follow_the_program),
		TEST(test_a_plain_handler),
		TEST(test_siginfo),
		TEST(test_the_threads_mask),
		TEST(test_nesting),
		TEST(test_jumping_out),
		TEST(test_ignored),
		TEST(test_check),
		TEST(test_two_that_change_it),
		TEST(test_the_default_kills),
		TEST(test_resethand),
		TEST(test_a_late_tick_does_not_kill),
		TEST(test_the_default_kills_afterwards),
		TEST(test_an_undisturbed_handler),
		TEST(test_altstacks_are_avoided_beside_other_threads),
		TEST(test_what_is_ignored_changes_beside_other_threads),
		TEST(test_restart),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
