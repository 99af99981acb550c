/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Starts a program that may not make some system call, as systemd's SystemCallFilter= does: it
 * is ended if it makes it. ?SYSCALL: it waits for somebody who decides, as container runtimes
 * have it, until nobody can any more, which is so behind the exec.
 *
 * in_filter [?]SYSCALL[,[?]SYSCALL...] PROGRAM [ARGUMENT...]
 */
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

static const struct {
	const char *name;
	unsigned number;
} forbidden[] = {
	{ "faccessat", SYS_faccessat },
	{ "getcpu", SYS_getcpu },
	{ "perf_event_open", SYS_perf_event_open },
	{ "process_vm_readv", SYS_process_vm_readv },
	{ "process_vm_writev", SYS_process_vm_writev },
	{ "restart_syscall", SYS_restart_syscall },
	{ "rt_sigpending", SYS_rt_sigpending },
	{ "rt_sigtimedwait", SYS_rt_sigtimedwait },
	{ "sched_setaffinity", SYS_sched_setaffinity },
	{ "timer_create", SYS_timer_create },
	{ "wait4", SYS_wait4 },
};

static int number_of(const char *name)
{
	for (size_t i = 0; i < sizeof(forbidden) / sizeof(forbidden[0]); i++) {
		if (strcmp(forbidden[i].name, name) == 0)
			return (int)forbidden[i].number;
	}
	return -1;
}

static int forbid(unsigned number, bool asks)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, number, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, asks ? SECCOMP_RET_USER_NOTIF : SECCOMP_RET_KILL_PROCESS),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog filter = { sizeof(code) / sizeof(code[0]), code };

	if (asks)
		return syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER,
			       SECCOMP_FILTER_FLAG_NEW_LISTENER, &filter) < 0 ? -1 : 0;
	return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter);
}

int main(int argc, char **argv)
{
	if (argc < 3 || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0)
		return 2;
	for (char *name = strtok(argv[1], ","); name; name = strtok(NULL, ",")) {
		bool asks = *name == '?';
		int number = number_of(name + asks);

		if (number < 0 || forbid((unsigned)number, asks) != 0) {
			fprintf(stderr, "in_filter: cannot forbid %s\n", name);
			return 2;
		}
	}
	execv(argv[2], argv + 2);
	perror("in_filter: exec");
	return 2;
}
