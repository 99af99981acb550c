/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program of one thread that changes what it is by calls that demand something of all threads of a process: its users, its
 * capabilities, its namespaces. It works before and after, and says how each call went, which descriptor is free, and
 * whether all threads of the process have its users and capabilities.
 *
 * in_alone WHAT [SECONDS]; needs root.
 */
#include <dirent.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <linux/securebits.h>
#include <sched.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "in_spins.h"

#define NOBODY 65534

/* --- users and capabilities --- */

static void become_nobody(void)
{
	SAY(setgroups(0, NULL));
	SAY(setresgid(NOBODY, NOBODY, NOBODY));
	SAY(setresuid(NOBODY, NOBODY, NOBODY));
	SAY(setuid(0));
}

static void plain(void)
{
	SAY(setegid(NOBODY));
	SAY(seteuid(NOBODY));
	SAY(seteuid(0));
	SAY(initgroups("root", 0));
	become_nobody();
}

static void keepcaps(void)
{
	SAY(prctl(PR_SET_KEEPCAPS, 1));
	SAY(setreuid(NOBODY, NOBODY));
	SAY(setgroups(0, NULL));
	SAY(setregid(NOBODY, NOBODY));
}

static void securebits(void)
{
	SAY(prctl(PR_SET_SECUREBITS, SECBIT_NO_SETUID_FIXUP));
	SAY(setuid(NOBODY));
	SAY(setgid(NOBODY));
	SAY(setuid(0));
}

static long set_capabilities(uint32_t low)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct sets[2] = { { .effective = low, .permitted = low } };

	return syscall(SYS_capset, &header, sets);
}

static void capabilities(void)
{
	SAY(set_capabilities(1u << CAP_SETGID));
	SAY(setgid(NOBODY));
	SAY(setuid(NOBODY));
}

static void no_capabilities(void)
{
	SAY(set_capabilities(0));
	SAY(setgid(NOBODY));
}

static void bounding(void)
{
	for (int i = 0; i < 8; i++)
		SAY(prctl(PR_CAPBSET_DROP, i));
	SAY(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
	become_nobody();
}

/* --- namespaces --- */

static void user(void)
{
	SAY(unshare(CLONE_NEWUSER));
}

static void user_and_mounts(void)
{
	SAY(unshare(CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWUTS));
	SAY(sethostname("other", 5));
}

static void by_number(void)
{
	SAY(syscall(SYS_unshare, CLONE_NEWUSER));
}

static void mounts(void)
{
	SAY(unshare(CLONE_NEWNS));
	SAY(unshare(CLONE_FS));
	SAY(unshare(CLONE_FILES));
	SAY(unshare(CLONE_THREAD));
	SAY(unshare(CLONE_SIGHAND));
}

static void children(void)
{
	int status = 0;
	pid_t pid;

	SAY(unshare(CLONE_NEWUSER | CLONE_NEWPID));
	pid = fork();
	if (pid == 0)
		_exit(getpid() == 1 ? 0 : 1);
	waitpid(pid, &status, 0);
	SAY(status);
}

/* As Chromium makes one: its thread register leads to zeroes, so it has no errno. */
static int call_without_variables(void *arg)
{
	return syscall(SYS_getppid) == *(pid_t *)arg && syscall(SYS_unshare, 0) == 0 ? 5 : 6;
}

static void bare_child(void)
{
	static char stack[65536], thread[8192];
	pid_t own = getpid(), pid;
	int status = 0;

	pid = clone(call_without_variables, stack + sizeof(stack), CLONE_VM | CLONE_VFORK | CLONE_SETTLS | SIGCHLD, &own, NULL,
		    thread + sizeof(thread) / 2, NULL);
	waitpid(pid, &status, 0);
	SAY(status);
}

/* A child in namespaces of its own, which waits for its end. */
static pid_t make_child(void)
{
	int ready[2];
	pid_t pid;
	char byte;

	if (pipe(ready) != 0)
		exit(2);
	pid = fork();
	if (pid == 0) {
		if (unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0 || write(ready[1], "r", 1) != 1)
			_exit(2);
		for (;;)
			pause();
	}
	if (read(ready[0], &byte, 1) != 1)
		exit(2);
	close(ready[0]);
	close(ready[1]);
	return pid;
}

static void end_child(pid_t pid)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

static int open_namespace(pid_t pid, const char *kind)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/ns/%s", (int)pid, kind);
	return open(path, O_RDONLY | O_CLOEXEC);
}

static void enter_user(void)
{
	pid_t pid = make_child();
	int fd = open_namespace(pid, "user");

	SAY(setns(fd, 0));
	SAY(setns(fd, CLONE_NEWUSER));
	close(fd);
	end_child(pid);
}

static void enter_mounts(void)
{
	pid_t pid = make_child();
	int own = open_namespace(getpid(), "mnt"), fd = open_namespace(pid, "mnt");

	SAY(setns(fd, CLONE_NEWNS));
	for (int i = 0; i < 5; i++)
		SAY(setns(own, CLONE_NEWNS));
	SAY(setns(fd, CLONE_NEWNET));
	close(fd);
	close(own);
	end_child(pid);
}

static void enter_process(void)
{
	pid_t pid = make_child();
	int fd = (int)syscall(SYS_pidfd_open, pid, 0);

	SAY(setns(fd, CLONE_NEWUSER | CLONE_NEWNS));
	close(fd);
	end_child(pid);
}

/* --- what there is after it --- */

/* The lines of users and capabilities of a thread. */
static void read_rights(const char *tid, char *ret, size_t size)
{
	char path[64], line[256];
	FILE *file;

	*ret = 0;
	snprintf(path, sizeof(path), "/proc/self/task/%.16s/status", tid);
	file = fopen(path, "r");
	while (file && fgets(line, sizeof(line), file)) {
		if (strncmp(line, "Uid:", 4) == 0 || strncmp(line, "Gid:", 4) == 0 ||
		    strncmp(line, "CapPrm:", 7) == 0 || strncmp(line, "CapEff:", 7) == 0)
			strncat(ret, line, size - strlen(ret) - 1);
	}
	if (file)
		fclose(file);
}

static bool are_alike(void)
{
	char own[1024], other[1024], name[16];
	DIR *tasks = opendir("/proc/self/task");
	struct dirent *entry;
	bool alike = true; /* also where no descriptor is left to look with */

	snprintf(name, sizeof(name), "%d", (int)getpid());
	read_rights(name, own, sizeof(own));
	while (tasks && (entry = readdir(tasks))) {
		if (entry->d_name[0] == '.')
			continue;
		read_rights(entry->d_name, other, sizeof(other));
		alike = alike && (!*other || strcmp(own, other) == 0);
	}
	if (tasks)
		closedir(tasks);
	return alike;
}

/* The agent's threads follow a capset() within moments. */
static bool become_alike(void)
{
	int64_t until = clock_ns(CLOCK_MONOTONIC) + 10 * NS_PER_S;

	while (!are_alike()) {
		if (clock_ns(CLOCK_MONOTONIC) > until)
			return false;
		usleep(10000);
	}
	return true;
}

static const struct {
	const char *name;
	void (*run)(void);
} all[] = {
	{ "plain", plain },
	{ "keepcaps", keepcaps },
	{ "securebits", securebits },
	{ "capabilities", capabilities },
	{ "no_capabilities", no_capabilities },
	{ "bounding", bounding },
	{ "user", user },
	{ "user_and_mounts", user_and_mounts },
	{ "by_number", by_number },
	{ "mounts", mounts },
	{ "children", children },
	{ "bare_child", bare_child },
	{ "enter_user", enter_user },
	{ "enter_mounts", enter_mounts },
	{ "enter_process", enter_process },
};

int main(int argc, char **argv)
{
	int64_t half = argument(argc, argv, 2, 2) * NS_PER_S / 2;
	int free_before = dup(0), free_after;

	bounded(60);
	setvbuf(stdout, NULL, _IOLBF, 0);
	close(free_before);
	spin_before(half);
	for (size_t i = 0; argc > 1 && i < sizeof(all) / sizeof(all[0]); i++) {
		if (strcmp(argv[1], all[i].name) == 0)
			all[i].run();
	}
	spin_after(half);
	free_after = dup(0);
	printf("descriptor %d\nalike %s\n", free_after - free_before, become_alike() ? "yes" : "no");
	return 0;
}
