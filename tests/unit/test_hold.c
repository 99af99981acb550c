/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Signals that a thread takes while it is held. A child waits in epoll_wait(), which an interruption makes fail. It is
 * attached to, gets a signal, stands for it, and is let go. Its call may fail only where it fails without a tracer.
 * And which calls only wait.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <errno.h>
#include <linux/futex.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "frozen/arch.h"
#include "os/hold.h"
#include "os/syscalls.h"
#include "os/task.h"

enum { WAITED = 10, FAILED, FAILED_AFTER_HANDLER }; /* how the child ends */

static volatile sig_atomic_t handled;

static void handle(int number)
{
	(void)number;
	handled = 1;
}

struct child {
	void (*wait)(int fd);
	int signal;
	void (*action)(int);
	pid_t pid;
	int ends[2];        /* a byte in this pipe is what it waits for */
	struct sf_held held;
	int end;            /* its exit status */
};

static void wait_for_data(int fd)
{
	struct epoll_event event = { .events = EPOLLIN };
	const int epoll = epoll_create1(0);
	int n;

	epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event);
	n = epoll_wait(epoll, &event, 1, -1);
	_exit(n == 1 ? WAITED : n < 0 && errno == EINTR ? handled ? FAILED_AFTER_HANDLER : FAILED : 1);
}

static void read_data(int fd)
{
	char byte;

	_exit(read(fd, &byte, 1) == 1 ? WAITED : FAILED);
}

static void start(struct child *child)
{
	assert_int_equal(pipe(child->ends), 0);
	child->pid = fork();
	if (child->pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0); /* Yama: a process beside it may hold it, too */
		signal(child->signal, child->action);
		child->wait(child->ends[0]);
	}
	while (sf_task_letter(child->pid, child->pid) != 'S')
		usleep(1000);
}

/* Attached as sf_hold_request() does, but for the interruption: the signal is first. */
static void hold(void *arg)
{
	struct child *child = arg;
	struct sf_regs regs;

	ptrace(PTRACE_SEIZE, child->pid, NULL, NULL);
	kill(child->pid, child->signal);
	if (sf_hold_wait(&child->held, true) && child->held.stopped && sf_hold_registers(&child->held, &regs))
		sf_hold_release(&child->held);
}

static int end_of(void (*wait_in)(int fd), int signal, void (*action)(int))
{
	struct child child = { .wait = wait_in, .signal = signal, .action = action };
	struct sf_error err = { 0 };
	int status = 0;

	start(&child);
	assert_true(sf_hold_run(hold, &child, &err));
	assert_int_equal(child.held.signal, signal);
	assert_false(child.held.ours);
	assert_true(child.held.in_wait);
	if (signal == SIGSTOP) {
		assert_int_equal(waitpid(child.pid, &status, WUNTRACED), child.pid);
		assert_true(WIFSTOPPED(status));
		kill(child.pid, SIGCONT);
	}
	assert_int_equal(write(child.ends[1], "", 1), 1);
	assert_int_equal(waitpid(child.pid, &status, 0), child.pid);
	close(child.ends[0]);
	close(child.ends[1]);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static int end_after(int signal, void (*action)(int))
{
	return end_of(wait_for_data, signal, action);
}

/* Without a tracer the kernel discards these when they are sent. */
static void test_ignored_signals(void **state)
{
	(void)state;
	assert_int_equal(end_after(SIGCHLD, SIG_DFL), WAITED);
	assert_int_equal(end_after(SIGWINCH, SIG_DFL), WAITED);
	assert_int_equal(end_after(SIGUSR1, SIG_IGN), WAITED);
	assert_int_equal(end_of(read_data, SIGCHLD, SIG_DFL), WAITED);
}

static void test_signals_of_the_program(void **state)
{
	(void)state;
	assert_int_equal(end_after(SIGUSR1, handle), FAILED_AFTER_HANDLER);
	assert_int_equal(end_after(SIGCHLD, handle), FAILED_AFTER_HANDLER);
	assert_int_equal(end_after(SIGSTOP, SIG_DFL), FAILED);
}

/* A process that holds `child`, says so, and lets it go when it is told. */
struct holder {
	struct child child;
	int says[2], told[2];
	bool ends;          /* the child does, while it is held */
};

static void hold_until_told(void *arg)
{
	struct holder *holder = arg;
	sigset_t pending;
	char byte = 0;

	if (sf_hold_request(holder->child.pid) != SF_HOLD_REQUESTED || !sf_hold_wait(&holder->child.held, true))
		_exit(1);
	if (write(holder->says[1], &byte, 1) != 1 || read(holder->told[0], &byte, 1) != 1)
		_exit(1);
	if (sf_hold_request(getppid()) != SF_HOLD_BARRED) /* no other one meanwhile */
		_exit(1);
	if (holder->ends) {
		kill(holder->child.pid, SIGKILL);
		while (sf_hold_wait(&holder->child.held, true))
			;
		if (sigpending(&pending) != 0 || sigismember(&pending, SIGTSTP))
			_exit(1);
		return;
	}
	sf_hold_release(&holder->child.held);
	sf_hold_let_stop();
}

static pid_t start_holder(struct holder *holder)
{
	struct sf_error err = { 0 };
	const pid_t pid = fork();
	char byte;

	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		setpgid(0, 0); /* its parent is in the same session: its group is no orphan, and can be stopped */
		_exit(sf_hold_run(hold_until_told, holder, &err) ? 0 : 1);
	}
	close(holder->says[1]); /* the end of one that cannot hold is seen */
	assert_int_equal(read(holder->says[0], &byte, 1), 1);
	return pid;
}

/* Ctrl-Z stops the process that holds others once it has let them go, or they have ended. */
static void stop_holder(int signal, bool ends)
{
	struct holder holder = { .child = { .wait = read_data, .signal = SIGUSR1, .action = SIG_DFL }, .ends = ends };
	int status;
	pid_t pid;

	start(&holder.child);
	assert_true(pipe(holder.says) == 0 && pipe(holder.told) == 0);
	pid = start_holder(&holder);
	kill(pid, signal);
	usleep(50000);
	assert_int_equal(waitpid(pid, &status, WUNTRACED | WNOHANG), 0);
	assert_int_equal(write(holder.told[1], "", 1), 1);
	assert_int_equal(waitpid(pid, &status, WUNTRACED), pid);
	assert_true(WIFSTOPPED(status) && WSTOPSIG(status) == signal);
	assert_int_not_equal(sf_task_letter(holder.child.pid, holder.child.pid), 't');
	kill(holder.child.pid, SIGKILL);
	assert_int_equal(waitpid(holder.child.pid, &status, 0), holder.child.pid);
	kill(pid, SIGCONT);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	close(holder.says[0]);
	close(holder.told[0]);
	close(holder.told[1]);
	close(holder.child.ends[0]);
	close(holder.child.ends[1]);
}

static void test_stop_waits_for_release(void **state)
{
	(void)state;
	stop_holder(SIGTSTP, false);
	stop_holder(SIGTTIN, false);
	stop_holder(SIGTTOU, false);
	stop_holder(SIGTSTP, true);
}

static void test_calls_that_only_wait(void **state)
{
	(void)state;
	assert_true(sf_syscall_only_waits(SYS_futex, FUTEX_WAIT | FUTEX_PRIVATE_FLAG));
	assert_true(sf_syscall_only_waits(SYS_futex, FUTEX_WAIT_BITSET | FUTEX_CLOCK_REALTIME));
	assert_true(sf_syscall_only_waits(SYS_futex, FUTEX_LOCK_PI));
	assert_false(sf_syscall_only_waits(SYS_futex, FUTEX_WAKE | FUTEX_PRIVATE_FLAG));
	assert_false(sf_syscall_only_waits(SYS_futex, FUTEX_CMP_REQUEUE));
	assert_true(sf_syscall_only_waits(SYS_epoll_pwait, FUTEX_WAKE));
	assert_false(sf_syscall_only_waits(SYS_write, FUTEX_WAIT));
	assert_false(sf_syscall_only_waits(SF_SYSCALL_NONE, FUTEX_WAIT));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_ignored_signals),
		cmocka_unit_test(test_signals_of_the_program),
		cmocka_unit_test(test_stop_waits_for_release),
		cmocka_unit_test(test_calls_that_only_wait),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
