/* SPDX-License-Identifier: Apache-2.0 */
/*
 * poses FILE SECONDS [later]: spins, and is a process of the program FILE, as far as the system tells, from the beginning, or
 * from SIGUSR1 on: /proc/PID/exe leads there, and its code begins elsewhere, as after an exec. With a FILE of 32 bits it stands
 * in for a 32-bit process where the kernel runs none. Where it may not, it says so and exits with 3.
 */
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "program.h"

#define MAX_MAPPINGS 64

static volatile sig_atomic_t is_told;

static void be_told(int number)
{
	is_told = number;
}

struct mapping {
	uintptr_t start, end;
	int protection;
};

/* Those of the file that `name` leads to. */
static size_t list_mappings(const char *name, struct mapping *ret)
{
	char line[PATH_MAX + 128], path[PATH_MAX], flags[5];
	FILE *file = fopen("/proc/self/maps", "r");
	size_t n = 0;

	while (n < MAX_MAPPINGS && fgets(line, sizeof(line), file)) {
		unsigned long start, end;

		path[0] = 0;
		if (sscanf(line, "%lx-%lx %4s %*s %*s %*s %4095s", &start, &end, flags, path) < 3 || strcmp(path, name) != 0)
			continue;
		ret[n++] = (struct mapping){ start, end, (flags[0] == 'r' ? PROT_READ : 0) | (flags[1] == 'w' ? PROT_WRITE : 0) |
							 (flags[2] == 'x' ? PROT_EXEC : 0) };
	}
	fclose(file);
	return n;
}

/* Puts a copy of the memory in its place, which is of no file. */
static void replace(const struct mapping *mapping)
{
	const size_t size = mapping->end - mapping->start;
	void *copy = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (copy == MAP_FAILED)
		exit(2);
	memcpy(copy, (const void *)mapping->start, size);
	mprotect(copy, size, mapping->protection);
	if (mremap(copy, size, size, MREMAP_MAYMOVE | MREMAP_FIXED, mapping->start) == MAP_FAILED)
		exit(2);
}

/* The fields of proc_pid_stat(5) from the 26th on, of which those of the address space are kept. */
static struct prctl_mm_map address_space(void)
{
	unsigned long long value[52] = { 0 };
	char text[4096] = "", *p;
	FILE *file = fopen("/proc/self/stat", "r");

	fread(text, 1, sizeof(text) - 1, file);
	fclose(file);
	p = strrchr(text, ')') + 4;
	for (int i = 4; i < 52; i++)
		value[i] = strtoull(p, &p, 10);
	return (struct prctl_mm_map){
		.start_code = value[26], .end_code = value[27], .start_stack = value[28],
		.start_data = value[45], .end_data = value[46], .start_brk = value[47], .brk = (uintptr_t)sbrk(0),
		.arg_start = value[48], .arg_end = value[49], .env_start = value[50], .env_end = value[51],
	};
}

/*
 * The kernel lets a process change its program only when nothing of the old one is mapped, and in a user namespace of
 * its own.
 */
static void become(const char *name)
{
	static struct mapping mappings[MAX_MAPPINGS];
	struct prctl_mm_map space = address_space();
	char own[PATH_MAX] = "";
	const int fd = open(name, O_RDONLY);
	size_t n;

	if (readlink("/proc/self/exe", own, sizeof(own) - 1) < 0 || fd < 0)
		exit(2);
	n = list_mappings(own, mappings);
	for (size_t i = 0; i < n; i++)
		replace(&mappings[i]);
	space.exe_fd = (uint32_t)fd;
	space.start_code++;
	if (unshare(CLONE_NEWUSER) != 0 || prctl(PR_SET_MM, PR_SET_MM_MAP, &space, sizeof(space), 0) != 0) {
		printf("cannot pose: %s\n", strerror(errno));
		exit(3);
	}
	close(fd);
}

int main(int argc, char **argv)
{
	const int64_t start_ns = now_ns();
	bool poses = !argument_is(argc, argv, 3, "later");

	if (argc < 3)
		return 2;
	bounded(120);
	signal(SIGUSR1, be_told);
	if (poses)
		become(argv[1]);
	ready();
	while (lasts(start_ns, atof(argv[2]))) {
		if (!poses && is_told) {
			become(argv[1]);
			poses = true;
		}
	}
	return 0;
}
