/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A server that drops its rights: started as root, with threads, it becomes somebody else half-way (of its CPU time).
 * Every thread of the process must be somebody else then, those of a profiler inside it, too. FOLDER: before that it makes
 * this folder its root, in which there is no /proc.
 *
 * in_setuid [SECONDS [FOLDER]]
 */
#include <dirent.h>
#include <grp.h>
#include <pthread.h>

#include "in_program.h"

#define NOBODY 65534

static volatile bool done;

static NOINLINE void spin_before_setuid(int64_t ns)
{
	burn_ns(ns);
	NO_TAIL_CALL();
}

static NOINLINE void spin_after_setuid(int64_t ns)
{
	KEEP(1); /* else the compiler finds two functions with the same body, and keeps one */
	burn_ns(ns);
	NO_TAIL_CALL();
}

static void *second_thread(void *arg)
{
	while (!done)
		burn_ns(1000000);
	return arg;
}

static bool is_nobody(const char *tid)
{
	char path[64], line[256];
	unsigned uid = 0;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/self/task/%.16s/status", tid);
	file = fopen(path, "r");
	if (!file)
		return true; /* gone */
	while (fgets(line, sizeof(line), file))
		if (sscanf(line, "Uid: %u", &uid) == 1)
			break;
	fclose(file);
	return uid == NOBODY;
}

static unsigned count_others(unsigned *n_ret)
{
	DIR *tasks = opendir("/proc/self/task");
	struct dirent *entry;
	unsigned others = 0;

	while (tasks && (entry = readdir(tasks)) != NULL) {
		if (entry->d_name[0] == '.')
			continue;
		(*n_ret)++;
		others += !is_nobody(entry->d_name);
	}
	if (tasks)
		closedir(tasks);
	return others;
}

int main(int argc, char **argv)
{
	int64_t half = argument(argc, argv, 1, 2) * NS_PER_S / 2;
	unsigned others, n = 0;
	pthread_t thread;

	bounded(60);
	ready();
	if (pthread_create(&thread, NULL, second_thread, NULL) != 0)
		return 2;
	spin_before_setuid(half);
	if (argc > 2 && (chroot(argv[2]) != 0 || chdir("/") != 0))
		return 2;
	if (setgroups(0, NULL) != 0 || setgid(NOBODY) != 0 || setuid(NOBODY) != 0)
		return 2;
	others = count_others(&n);
	spin_after_setuid(half);
	done = true;
	pthread_join(thread, NULL);
	printf("threads %u not nobody %u\n", n, others);
	return others != 0;
}
