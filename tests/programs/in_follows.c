/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program that changes its one thread, and not the process: filters, scheduling, CPUs, thread cgroups, and namespaces that a
 * thread may change for itself. It works before and after, and says how each call went and what it finds afterwards.
 *
 * in_follows WHAT [SECONDS [CGROUP2]]; needs root. CGROUP2: where cgroups of version 2 are mounted.
 */
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <sched.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "in_spins.h"

#ifndef CLONE_NEWTIME
#define CLONE_NEWTIME 0x80
#endif

static void *nothing(void *arg)
{
	return arg;
}

/* What it can do after the change: a thread and a child. All is said on stdout, which is compared. */
static void make_more(void)
{
	pthread_t thread;
	int error = pthread_create(&thread, NULL, nothing, NULL), status = -1;
	pid_t pid;

	printf("thread %d\n", error);
	if (!error)
		pthread_join(thread, NULL);
	pid = fork();
	if (pid == 0)
		_exit(3);
	if (pid < 0 || waitpid(pid, &status, 0) < 0)
		printf("fork: %s\n", strerror(errno));
	printf("child %d\n", status);
}

/* --- filters --- */

/* These calls fail with EPERM, in the calling thread or in all. */
static long refuse(const int *numbers, unsigned n, unsigned flags)
{
	struct sock_filter code[40];
	struct sock_fprog program = { .filter = code };
	unsigned at = 0;

	code[at++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));
	for (unsigned i = 0; i < n; i++) {
		code[at++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)numbers[i], 0, 1);
		code[at++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM);
	}
	code[at++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	program.len = (unsigned short)at;
	return syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, &program);
}

static long filters(unsigned flags)
{
	static const int one[] = { SYS_getppid };

	return refuse(one, 1, flags);
}

/* Then one for all threads: refused if another thread had one that this one has not. */
static void filter(void)
{
	SAY(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
	SAY(filters(0));
	SAY(filters(SECCOMP_FILTER_FLAG_TSYNC));
	SAY(filters(0));
	SAY(filters(SECCOMP_FILTER_FLAG_TSYNC));
	SAY(prctl(PR_GET_SECCOMP));
	SAY(prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0));
	SAY(getppid());
	SAY(setuid(65534));
	make_more();
}

/* What few programs call, and the agent does. */
static void strange_filter(void)
{
	static const int calls[] = { SYS_process_vm_readv,
				     SYS_process_vm_writev,
				     SYS_timer_settime,
				     SYS_timer_create,
				     SYS_timer_delete,
				     SYS_sched_setaffinity,
				     SYS_sched_getaffinity,
				     SYS_perf_event_open,
				     SYS_rt_tgsigqueueinfo,
				     SYS_tgkill,
				     SYS_getcpu,
				     SYS_memfd_create,
				     SYS_close_range,
				     SYS_getdents64 };

	SAY(refuse(calls, sizeof(calls) / sizeof(calls[0]), 0));
	make_more();
}

static void strict(void)
{
	fflush(stdout);
	if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT) != 0)
		_exit(2);
	syscall(SYS_write, 1, "strict\n", 7);
	syscall(SYS_exit, 5);
}

/* --- system calls that the thread handles itself --- */

static volatile char selector = SYSCALL_DISPATCH_FILTER_ALLOW;
static volatile unsigned n_dispatched;

static void count_call(int number)
{
	(void)number;
	selector = SYSCALL_DISPATCH_FILTER_ALLOW; /* the handler's return is a call, too */
	n_dispatched++;
}

static void dispatch(void)
{
	const struct sigaction action = { .sa_handler = count_call };

	SAY(sigaction(SIGSYS, &action, NULL));
	SAY(prctl(PR_SET_SYSCALL_USER_DISPATCH, PR_SYS_DISPATCH_ON, 0, 0, &selector));
	for (int i = 0; i < 200; i++) {
		selector = SYSCALL_DISPATCH_FILTER_BLOCK;
		for (volatile int turn = 0; turn < 100000; turn++)
			;
		syscall(SYS_getppid);
	}
	selector = SYSCALL_DISPATCH_FILTER_ALLOW;
	printf("dispatched %u\n", n_dispatched);
	make_more();
}

/* --- scheduling --- */

static long set_policy(int policy, int priority)
{
	const struct sched_param param = { .sched_priority = priority };

	return sched_setscheduler(0, policy, &param);
}

static long set_deadline(void)
{
	struct {
		uint32_t size, policy;
		uint64_t flags;
		int32_t nice;
		uint32_t priority;
		uint64_t runtime, deadline, period;
	} attr = { .size = sizeof(attr), .policy = 6, .runtime = 5000000, .deadline = 100000000, .period = 100000000 };

	return syscall(SYS_sched_setattr, 0, &attr, 0);
}

static void fifo(void)
{
	SAY(set_policy(SCHED_FIFO, 10));
	SAY(setuid(0));
	SAY(unshare(CLONE_NEWNS));
	SAY(sched_getscheduler(0));
	make_more();
}

static void round_robin(void)
{
	SAY(set_policy(SCHED_RR | SCHED_RESET_ON_FORK, 1));
	SAY(sched_getscheduler(0));
	make_more();
}

static void deadline(void)
{
	SAY(set_deadline());
	SAY(sched_getscheduler(0));
	SAY(setgid(0));
	make_more();
	SAY(set_policy(SCHED_OTHER, 0));
}

static _Atomic bool over;

/* On the CPU of the other one, before all ordinary threads. */
static void *be_in_the_way(void *arg)
{
	set_policy(SCHED_FIFO, 10);
	while (!over)
		;
	return arg;
}

static int compare(const void *a, const void *b)
{
	return (*(const int64_t *)a > *(const int64_t *)b) - (*(const int64_t *)a < *(const int64_t *)b);
}

/* A thread that goes before all others takes no longer for what it does than it computes. */
static void real_time(void)
{
	enum { N = 61 };
	int64_t took[N];
	cpu_set_t one;
	pthread_t thread;

	CPU_ZERO(&one);
	CPU_SET(sched_getcpu(), &one);
	SAY(sched_setaffinity(0, sizeof(one), &one));
	SAY(pthread_create(&thread, NULL, be_in_the_way, NULL));
	SAY(set_policy(SCHED_FIFO, 20));
	for (int i = 0; i < N; i++) {
		int64_t begin = now_ns();

		burn_ns(3000000);
		took[i] = now_ns() - begin;
		sleep_ns(2000000);
	}
	over = true;
	pthread_join(thread, NULL);
	qsort(took, N, sizeof(took[0]), compare);
	printf("in time %s\n", took[N / 2] < 5000000 ? "yes" : "no");
}

/* --- the time stamp of the CPU --- */

/* Each thread has its own, and gets its creator's. */
static void *forbid_time_stamps(void *arg)
{
	(void)arg;
	SAY(syscall(SYS_prctl, PR_SET_TSC, PR_TSC_SIGSEGV, 0, 0, 0));
	burn_ns(20000000);
	return NULL;
}

/* A child has no time stamp either. */
static void no_time_stamps(void)
{
	pthread_t thread;
	int status;

	pthread_create(&thread, NULL, forbid_time_stamps, NULL);
	pthread_join(thread, NULL);
	SAY(prctl(PR_SET_TSC, PR_TSC_SIGSEGV, 0, 0, 0));
	if (fork() == 0) {
		burn_ns(20000000);
		_exit(7);
	}
	wait(&status);
	SAY(WIFEXITED(status) ? WEXITSTATUS(status) : -1);
}

static void idle(void)
{
	SAY(set_policy(SCHED_BATCH, 0));
	SAY(set_policy(SCHED_IDLE, 0));
	SAY(sched_getscheduler(0));
	make_more();
}

/* The agent's threads are in the group of processes, too. */
static void nice_values(void)
{
	SAY(setpgid(0, 0));
	SAY(nice(7));
	SAY(getpriority(PRIO_PROCESS, 0));
	SAY(setpriority(PRIO_PGRP, 0, 9));
	SAY(getpriority(PRIO_PGRP, 0));
	SAY(setresuid(65534, 65534, 65534));
	SAY(setpriority(PRIO_PGRP, 0, 9));
	SAY(setpriority(PRIO_PGRP, 0, 12));
	SAY(setpriority(PRIO_PGRP, 0, 11));
	make_more();
}

/* --- CPUs --- */

static void affinity(void)
{
	cpu_set_t one;

	CPU_ZERO(&one);
	CPU_SET(0, &one);
	SAY(sched_setaffinity(0, sizeof(one), &one));
	SAY(sched_setaffinity(getpid(), sizeof(one), &one));
	CPU_ZERO(&one);
	SAY(sched_getaffinity(0, sizeof(one), &one));
	printf("cpus %d\n", CPU_COUNT(&one));
	make_more();
}

/* --- namespaces --- */

static void one_each(void)
{
	SAY(unshare(CLONE_NEWNET));
	SAY(unshare(CLONE_NEWIPC));
	SAY(unshare(CLONE_NEWUTS));
	SAY(unshare(CLONE_NEWCGROUP));
	SAY(sethostname("other", 5));
	make_more();
}

/* The next child is in it, and no thread may be made until then. */
static void time_of_children(void)
{
	SAY(unshare(CLONE_NEWTIME));
	SAY(setuid(0));
	make_more();
}

static long enter(const char *kind, int type)
{
	char path[64];
	int fd;
	long result;

	snprintf(path, sizeof(path), "/proc/self/ns/%s", kind);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	result = setns(fd, type);
	close(fd);
	return result;
}

static void enter_own(void)
{
	SAY(enter("net", CLONE_NEWNET));
	SAY(enter("ipc", 0));
	SAY(enter("uts", CLONE_NEWUTS));
	SAY(enter("cgroup", 0));
	SAY(enter("time", CLONE_NEWTIME));
	SAY(enter("time_for_children", 0));
	SAY(enter("pid_for_children", CLONE_NEWPID));
	make_more();
}

/* --- cgroups of threads --- */

static char cgroup[128];

static long write_to(const char *folder, const char *file, const char *text)
{
	char path[256];
	int fd;
	long result;

	snprintf(path, sizeof(path), "%s%s/%s", cgroup, folder, file);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	result = fd < 0 ? -1 : write(fd, text, strlen(text));
	close(fd);
	return result;
}

static long make_folder(const char *folder)
{
	char path[256];

	snprintf(path, sizeof(path), "%s%s", cgroup, folder);
	return mkdir(path, 0755);
}

static long remove_folder(const char *folder)
{
	char path[256];

	snprintf(path, sizeof(path), "%s%s", cgroup, folder);
	return rmdir(path);
}

static void thread_cgroups(void)
{
	if (!*cgroup)
		return;
	SAY(make_folder(""));
	SAY(make_folder("/a"));
	SAY(make_folder("/b"));
	SAY(write_to("/a", "cgroup.type", "threaded"));
	SAY(write_to("/b", "cgroup.type", "threaded"));
	SAY(write_to("", "cgroup.procs", "0"));
	SAY(write_to("/a", "cgroup.threads", "0"));
	make_more();
	SAY(write_to("/b", "cgroup.threads", "0"));
	SAY(remove_folder("/a"));
	SAY(write_to("/../", "cgroup.procs", "0"));
	SAY(remove_folder("/b"));
	SAY(remove_folder(""));
}

static const struct {
	const char *name;
	void (*run)(void);
} all[] = {
	{ "filter", filter },
	{ "strange_filter", strange_filter },
	{ "strict", strict },
	{ "no_time_stamps", no_time_stamps },
	{ "dispatch", dispatch },
	{ "fifo", fifo },
	{ "round_robin", round_robin },
	{ "deadline", deadline },
	{ "real_time", real_time },
	{ "idle", idle },
	{ "nice", nice_values },
	{ "affinity", affinity },
	{ "one_each", one_each },
	{ "time_of_children", time_of_children },
	{ "enter_own", enter_own },
	{ "thread_cgroups", thread_cgroups },
};

int main(int argc, char **argv)
{
	int64_t half = argument(argc, argv, 2, 2) * NS_PER_S / 2;

	bounded(60);
	setvbuf(stdout, NULL, _IOLBF, 0);
	if (argc > 3)
		snprintf(cgroup, sizeof(cgroup), "%s/stillframe-test-%d", argv[3], (int)getpid());
	spin_before(half);
	for (size_t i = 0; argc > 1 && i < sizeof(all) / sizeof(all[0]); i++) {
		if (strcmp(argv[1], all[i].name) == 0)
			all[i].run();
	}
	spin_after(half);
	printf("done\n");
	return 0;
}
