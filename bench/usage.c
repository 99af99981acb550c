/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Preloaded, says at the end of a program what it used, whoever started it: a line "name user system elapsed" (seconds)
 * at the end of the file that SF_BENCH_USAGE names. For programs that a profiler launches: wait4 would give the profiler's
 * own time with theirs.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

static struct timespec began;

__attribute__((constructor)) static void begin(void)
{
	clock_gettime(CLOCK_MONOTONIC, &began);
}

static double seconds(struct timeval time)
{
	return (double)time.tv_sec + (double)time.tv_usec / 1e6;
}

__attribute__((destructor)) static void end(void)
{
	const char *path = getenv("SF_BENCH_USAGE");
	int fd = path ? open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600) : -1;
	struct rusage usage;
	struct timespec now;

	if (fd < 0)
		return;
	getrusage(RUSAGE_SELF, &usage);
	clock_gettime(CLOCK_MONOTONIC, &now);
	dprintf(fd, "%s %.6f %.6f %.6f\n", program_invocation_short_name, seconds(usage.ru_utime),
		seconds(usage.ru_stime),
		(double)(now.tv_sec - began.tv_sec) + (double)(now.tv_nsec - began.tv_nsec) / 1e9);
	close(fd);
}
