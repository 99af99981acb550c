/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program with threads that come and go, that closes descriptors which are not its own, as daemons do, and then opens
 * files, which get the numbers of what it closed, also those far up. Nobody else may write into its files, close them,
 * or read from its pipe.
 *
 * in_closer SECONDS FOLDER [once]        once: closes once at the start, then only opens and writes
 */
#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "in_program.h"

#define N_FILES 40
#define LINE "a line of the program's own file\n"

/* The numbers of what is open and not ours: taken first when they are free. */
static int foreign[N_FILES];
static int n_foreign;

static void find_foreign(void)
{
	DIR *folder = opendir("/proc/self/fd");
	struct dirent *entry;

	n_foreign = 0;
	while (folder && (entry = readdir(folder)) != NULL && n_foreign < N_FILES) {
		int fd = atoi(entry->d_name);

		if (fd > 2 && fd != dirfd(folder))
			foreign[n_foreign++] = fd;
	}
	closedir(folder);
}

/* Where somebody had his own, so that whoever does not look twice hits ours. */
static int move_there(int fd, int number)
{
	int there = fcntl(fd, F_DUPFD, number);

	close(fd);
	return there;
}

/* The owner of a descriptor for this thread closes it when the thread ends: when it is ours. */
static pthread_t bystander;
static volatile bool leave;

static void *stand_by(void *arg)
{
	burn_ns(15000000);
	while (!leave)
		sleep_ns(1000000);
	return arg;
}

static void start_bystander(void)
{
	leave = false;
	if (pthread_create(&bystander, NULL, stand_by, NULL) != 0)
		exit(2);
	burn_ns(20000000);
}

static void end_bystander(void)
{
	leave = true;
	pthread_join(bystander, NULL);
}

static void close_all(void)
{
#ifdef SYS_close_range
	if (syscall(SYS_close_range, 3u, ~0u, 0u) == 0)
		return;
#endif
	for (int fd = 3; fd < 1024; fd++)
		close(fd);
}

static NOINLINE bool write_own_files(const char *folder, int64_t ns, unsigned *lines_ret)
{
	int fd[N_FILES];
	char path[512];
	int64_t end = now_ns() + ns;

	for (int i = 0; i < N_FILES; i++) {
		snprintf(path, sizeof(path), "%s/%d", folder, i);
		fd[i] = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
		if (fd[i] >= 0 && i < n_foreign && foreign[i] > 2 * N_FILES)
			fd[i] = move_there(fd[i], foreign[i]);
		if (fd[i] < 0)
			return false;
	}
	end_bystander();
	do {
		for (int i = 0; i < N_FILES; i++)
			if (write(fd[i], LINE, strlen(LINE)) != (ssize_t)strlen(LINE)) {
				printf("write to descriptor %d: %s\n", fd[i], strerror(errno));
				return false;
			}
		burn_ns(2000000);
		(*lines_ret)++;
	} while (now_ns() < end);
	for (int i = 0; i < N_FILES; i++)
		if (close(fd[i]) != 0) {
			printf("somebody closed descriptor %d\n", fd[i]);
			return false;
		}
	return true;
}

static bool read_own_files(const char *folder, unsigned lines)
{
	char path[512], line[256];

	for (int i = 0; i < N_FILES; i++) {
		unsigned n = 0, wrong = 0;
		FILE *file;

		snprintf(path, sizeof(path), "%s/%d", folder, i);
		file = fopen(path, "r");
		for (; file && fgets(line, sizeof(line), file); n++)
			wrong += strcmp(line, LINE) != 0;
		if (file)
			fclose(file);
		if (n != lines || wrong) {
			printf("file %d: %u lines of %u, %u of them not ours\n", i, n, lines, wrong);
			return false;
		}
	}
	return true;
}

int main(int argc, char **argv)
{
	double seconds = argument(argc, argv, 1, 2);
	int64_t end;
	bool once = argument_is(argc, argv, 3, "once"), fine = true;
	unsigned turns = 0;

	if (argc < 3)
		return 2;
	bounded(60 + 10 * seconds);
	burn_ns(100000000); /* so that a profiler is well under way */
	start_bystander();
	find_foreign();
	close_all();
	end = now_ns() + seconds * NS_PER_S;
	for (; fine && (!turns || now_ns() < end); turns++) {
		unsigned lines = 0;

		fine = write_own_files(argv[2], 100000000, &lines) && read_own_files(argv[2], lines);
		start_bystander();
		if (!once) {
			find_foreign();
			close_all();
		}
	}
	printf("turns %u fine %d\n", turns, fine);
	return !fine;
}
