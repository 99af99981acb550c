/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program that counts its threads, as one that must have a single one: by the links of /proc/self/task, with each function of
 * libc that shows them. It works before and after.
 *
 * in_counts WHAT [SECONDS]
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "in_spins.h"

typedef int by_path(const char *path, struct stat *status);
typedef int by_folder(int folder, const char *path, struct stat *status, int flags);
typedef int old_by_path(int version, const char *path, struct stat *status);
typedef int old_by_folder(int version, int folder, const char *path, struct stat *status, int flags);

#define OLD_VERSION 1 /* _STAT_VER of glibc before 2.33, on x86-64 */

static void tell(const char *by, int result, const struct stat *status)
{
	printf("%s %d %u\n", by, result, result == 0 ? (unsigned)status->st_nlink : 0);
}

/* The functions that libc has; older programs call those with a version. */
static void count(void)
{
	static const char *const names[][2] = { { "stat", "fstatat" }, { "stat64", "fstatat64" } };
	static const char *const old_names[][2] = { { "__xstat", "__fxstatat" }, { "__xstat64", "__fxstatat64" } };
	int proc = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct stat status;
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/task//", (int)getpid());
	for (unsigned i = 0; i < 2; i++) {
		by_path *stat_it = (by_path *)dlsym(RTLD_DEFAULT, names[i][0]);
		by_folder *stat_at = (by_folder *)dlsym(RTLD_DEFAULT, names[i][1]);
		old_by_path *old_stat_it = (old_by_path *)dlsym(RTLD_DEFAULT, old_names[i][0]);
		old_by_folder *old_stat_at = (old_by_folder *)dlsym(RTLD_DEFAULT, old_names[i][1]);

		if (stat_it && stat_at) {
			tell(names[i][0], stat_it(path, &status), &status);
			tell(names[i][1], stat_at(proc, "self/task/", &status, 0), &status);
			tell("nothing", stat_it("/proc/self/no/task", &status), &status);
		}
		if (old_stat_it && old_stat_at) {
			tell(old_names[i][0], old_stat_it(OLD_VERSION, path, &status), &status);
			tell(old_names[i][1], old_stat_at(OLD_VERSION, proc, "self/task", &status, 0), &status);
		}
	}
	close(proc);
}

/* Other folders of this name: a child's, and a plain one. */
static void count_others(void)
{
	char folder[] = "/tmp/in_counts-XXXXXX", path[64];
	struct stat status;
	pid_t pid = fork();

	if (pid == 0) {
		for (;;)
			pause();
	}
	snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
	tell("child", stat(path, &status), &status);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	if (!mkdtemp(folder))
		exit(2);
	snprintf(path, sizeof(path), "%s/task", folder);
	if (mkdir(path, 0700) != 0)
		exit(2);
	tell("folder", stat(path, &status), &status);
	rmdir(path);
	rmdir(folder);
}

static void *wait_for_end(void *arg)
{
	char byte;

	return read(*(int *)arg, &byte, 1) == 0 ? NULL : arg;
}

static void count_with_another(void)
{
	pthread_t thread;
	int end[2];

	if (pipe(end) != 0 || pthread_create(&thread, NULL, wait_for_end, &end[0]) != 0)
		exit(2);
	count();
	close(end[1]);
	pthread_join(thread, NULL);
	close(end[0]);
}

int main(int argc, char **argv)
{
	int64_t half = argument(argc, argv, 2, 2) * NS_PER_S / 2;

	bounded(60);
	setvbuf(stdout, NULL, _IOLBF, 0);
	spin_before(half);
	count();
	count_with_another();
	count_others();
	spin_after(half);
	return 0;
}
