/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program that makes children by the number of clone(2), on stacks of their own, whose top is the address of their function
 * (x86-64), and works before and after.
 *
 * in_raw_clone NUMBER [SECONDS]: the number says nothing
 */
#include <linux/sched.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "in_spins.h"

#define STATUS 7
#define STACK (64u << 10)
#define TOP (STACK - 64)
#define VM 0x100 /* CLONE_VM */

static _Alignas(16) char stack[STACK];

static void end(void)
{
	syscall(SYS_exit_group, STATUS);
}

static void *prepare(void)
{
	void (*const function)(void) = end;

	memcpy(stack + TOP, &function, sizeof(function));
	return stack + TOP;
}

static void tell(const char *what, long child)
{
	int status = -1;

	waitpid((pid_t)child, &status, 0);
	printf("%s: status %x\n", what, status);
}

int main(int argc, char **argv)
{
	const int64_t ns = argument(argc, argv, 2, 0.3) * NS_PER_S;
	struct clone_args how = { .flags = VM, .exit_signal = SIGCHLD, .stack = (uintptr_t)stack, .stack_size = TOP };
	long child;

	bounded(60);
	spin_before(ns);
	tell("clone", syscall(SYS_clone, VM | SIGCHLD, prepare(), NULL, NULL, 0));
	prepare();
	tell("clone3", syscall(SYS_clone3, &how, sizeof(how)));
	child = syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, 0);
	if (child == 0)
		end();
	tell("as fork", child);
	spin_after(ns);
	return 0;
}
