/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A process with very much code: copies the largest shared objects of the machine under other names into a
 * temporary folder and maps their executable segments, until it has as much as it was told, and then works a little.
 *
 * big_code MEGABYTES SECONDS [THREADS]       with this many threads that sleep nearly all the time
 */
#include <elf.h>
#include <fcntl.h>
#include <glob.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static uint64_t mapped;
static unsigned n_files;

static void map_code(int fd)
{
	Elf64_Ehdr header;
	Elf64_Phdr segment;

	if (pread(fd, &header, sizeof(header), 0) != sizeof(header) ||
	    memcmp(header.e_ident, ELFMAG, SELFMAG) != 0)
		return;
	for (int i = 0; i < header.e_phnum; i++) {
		uint64_t start;

		if (pread(fd, &segment, sizeof(segment),
			  (off_t)(header.e_phoff + (uint64_t)i * sizeof(segment))) != sizeof(segment) ||
		    segment.p_type != PT_LOAD || !(segment.p_flags & PF_X))
			continue;
		start = segment.p_offset & ~UINT64_C(0xfff);
		if (mmap(NULL, segment.p_filesz + (segment.p_offset - start), PROT_READ | PROT_EXEC, MAP_PRIVATE,
			 fd, (off_t)start) != MAP_FAILED)
			mapped += segment.p_filesz;
	}
}

/* A copy with a build id of its own: the last byte of the first build id note is changed. */
static int copy_file(const char *path, unsigned round)
{
	int from = open(path, O_RDONLY | O_CLOEXEC), to = (int)memfd_create("code", MFD_CLOEXEC);
	static char buffer[1 << 20];
	ssize_t n;
	off_t at = 0;
	char *id;

	while ((n = read(from, buffer, sizeof(buffer))) > 0) {
		id = at ? NULL : memmem(buffer, (size_t)n < 4096 ? (size_t)n : 4096, "GNU\0", 4);
		if (id && id + 24 < buffer + n)
			id[23] = (char)(id[23] + (char)round);
		if (write(to, buffer, (size_t)n) != n)
			break;
		at += n;
	}
	close(from);
	return to;
}

static int by_size(const void *a, const void *b)
{
	struct stat left = { 0 }, right = { 0 };

	stat(*(char *const *)a, &left);
	stat(*(char *const *)b, &right);
	return (left.st_size < right.st_size) - (left.st_size > right.st_size);
}

static void *sleep_nearly_always(void *arg)
{
	for (;;)
		usleep(20000);
	return arg;
}

int main(int argc, char **argv)
{
	uint64_t wanted = (uint64_t)(argc > 1 ? atoi(argv[1]) : 500) * 1000000;
	time_t end = time(NULL) + (argc > 2 ? atoi(argv[2]) : 60);
	glob_t files;

	glob("/usr/lib/x86_64-linux-gnu/lib*.so*", 0, NULL, &files);
	glob("/usr/lib/*/lib*.so*", GLOB_APPEND, NULL, &files);
	glob("/usr/lib/jvm/*/lib/server/libjvm.so", GLOB_APPEND, NULL, &files);
	qsort(files.gl_pathv, files.gl_pathc, sizeof(char *), by_size);
	for (unsigned round = 0; mapped < wanted && round < 64; round++) {
		for (size_t i = 0; i < files.gl_pathc && i < 12 && mapped < wanted; i++) {
			int fd = copy_file(files.gl_pathv[i], round);

			map_code(fd);
			close(fd);
			n_files++;
		}
	}
	for (int i = 0; i < (argc > 3 ? atoi(argv[3]) : 0); i++)
		pthread_create(&(pthread_t){ 0 }, NULL, sleep_nearly_always, NULL);
	printf("%.0f MB of code in %u files\n", (double)mapped / 1e6, n_files);
	fflush(stdout);
	while (time(NULL) < end)
		usleep(100);
	return 0;
}
