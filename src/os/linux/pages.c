/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads memory of a process with the help of /proc/PID/task/TID/pagemap. The file has one word for each page: bit 63
 * says that the page is in memory, bit 62 that it was swapped out (kernel: admin-guide/mm/pagemap.rst).
 */
#include "os/pages.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "os/linux/proc.h"
#include "os/process.h"

#define THERE (UINT64_C(3) << 62)
#define MAX_PAGES 1040   /* 4 MB and a little, in pages of 4 KB */
#define MAX_RUNS (MAX_PAGES / 2) /* of pages that are there: functions with large arrays that they hardly touch call each other */
#define MAX_FILLED 64    /* pages, at once */

struct run {
	size_t start, end;   /* offsets from `addr` */
};

static void close_one(struct sf_pages *pages, unsigned i)
{
	if (pages->open[i].pid)
		close(pages->open[i].fd);
	pages->open[i].pid = 0;
}

void sf_pages_close(struct sf_pages *pages)
{
	for (unsigned i = 0; i < SF_PAGES_OPEN; i++)
		close_one(pages, i);
}

/* The thread's own file: the process's is of no use once its first thread has ended. */
static int get_file(struct sf_pages *pages, int32_t pid, int32_t tid)
{
	const unsigned i = (uint32_t)pid % SF_PAGES_OPEN;

	if (pages->open[i].pid != pid) {
		close_one(pages, i);
		pages->open[i].fd = sf_proc_open(pid, tid, "pagemap");
		pages->open[i].pid = pages->open[i].fd >= 0 ? pid : 0;
	}
	return pages->open[i].pid ? pages->open[i].fd : -1;
}

/*
 * How many pages are told of; 0: nothing is. A file is of the memory that the process had when it was opened. After an exec
 * it is empty, or, if the process had shared its parent's memory until then (vfork), the parent's: there the new stack is not.
 */
static size_t look(struct sf_pages *pages, int32_t pid, int32_t tid, uint64_t first, size_t n, uint64_t *ret)
{
	for (int i = 0; i < 2; i++) {
		int fd = get_file(pages, pid, tid);
		ssize_t got = fd >= 0 ? pread(fd, ret, n * sizeof(*ret), (off_t)(first * sizeof(*ret))) : -1;

		if (got > 0 && (ret[0] & THERE || i > 0))
			return (size_t)got / sizeof(*ret);
		close_one(pages, (uint32_t)pid % SF_PAGES_OPEN);
	}
	return 0;
}

static size_t find_runs(const uint64_t *entries, size_t n, uint64_t in_page, uint64_t page, size_t size,
			struct run runs[MAX_RUNS])
{
	size_t n_runs = 0, at = 0;

	for (size_t i = 0; i < n && at < size; i++) {
		size_t end = (i + 1) * page - in_page;

		end = end < size ? end : size;
		if (entries[i] & THERE) {
			if (n_runs && runs[n_runs - 1].end == at)
				runs[n_runs - 1].end = end;
			else
				runs[n_runs++] = (struct run){ at, end };
		}
		at = end;
	}
	return n_runs;
}

/* Up to where all that is there was read. */
static size_t end_of(const struct run *runs, size_t n_runs, size_t n_read)
{
	size_t end = 0;

	for (size_t i = 0; i < n_runs && n_read; i++) {
		const size_t size = runs[i].end - runs[i].start;
		const size_t n = n_read < size ? n_read : size;

		end = runs[i].start + n;
		n_read -= n;
	}
	return end;
}

static size_t read_runs(int32_t tid, uint8_t *ret, uint64_t addr, const struct run *runs, size_t n_runs)
{
	struct iovec here[MAX_RUNS], there[MAX_RUNS];
	size_t done = 0;
	ssize_t n;

	for (size_t i = 0; i < n_runs; i++) {
		const size_t size = runs[i].end - runs[i].start;

		memset(ret + done, 0, runs[i].start - done);
		here[i] = (struct iovec){ ret + runs[i].start, size };
		there[i] = (struct iovec){ (void *)(uintptr_t)(addr + runs[i].start), size };
		done = runs[i].end;
	}
	n = n_runs ? process_vm_readv(tid, here, n_runs, there, n_runs, 0) : 0;
	return n > 0 ? end_of(runs, n_runs, (size_t)n) : 0;
}

size_t sf_pages_read(struct sf_pages *pages, int32_t pid, int32_t tid, void *ret, uint64_t addr, size_t size)
{
	const uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE), first = addr / page;
	size_t n = (addr % page + size + page - 1) / page, told;
	uint64_t entries[MAX_PAGES];
	struct run runs[MAX_RUNS];

	if (n > MAX_PAGES)
		n = MAX_PAGES;
	told = n ? look(pages, pid, tid, first, n, entries) : 0;
	if (!told)
		return sf_process_read(tid, ret, addr, size);
	return read_runs(tid, ret, addr, runs, find_runs(entries, told, addr % page, page, size, runs));
}

/* A search for the mappings that hold the stacks, in the lines of /proc/PID/smaps. */
struct search {
	struct sf_pages_stack *stacks;
	size_t n;
	uint64_t last;       /* the highest of the stack pointers: no line behind its mapping is of use */
	uint64_t start, end; /* of the mapping that the lines are of */
	bool     is_private;
};

/* "START-END rw-p OFFSET DEVICE INODE PATH": no path, or that of the first thread's stack. */
static bool is_private_memory(const char *line, int path_at)
{
	const char *path = line + path_at;

	return line[path_at] == 0 || strcmp(path, "[stack]") == 0;
}

/* VmFlags, proc_pid_smaps(5): um, uw and ui are those of a userfaultfd. */
static bool is_filled_by_program(const char *flags)
{
	return strstr(flags, " um") || strstr(flags, " uw") || strstr(flags, " ui");
}

/* VmFlags is the last line of a mapping. */
static void end_mapping(const struct search *search, const char *flags)
{
	for (size_t i = 0; i < search->n; i++) {
		struct sf_pages_stack *stack = &search->stacks[i];

		if (stack->sp < search->start || stack->sp >= search->end)
			continue;
		stack->start = search->start;
		stack->end = search->end;
		stack->is_plain = search->is_private && !is_filled_by_program(flags);
	}
}

static bool search_line(const char *line, void *arg)
{
	struct search *search = arg;
	unsigned long start, end;
	char shared;
	int path_at = 0;

	if (sscanf(line, "%lx-%lx %*c%*c%*c%c %*s %*s %*s %n", &start, &end, &shared, &path_at) >= 3) {
		search->start = start;
		search->end = end;
		search->is_private = shared == 'p' && path_at && is_private_memory(line, path_at);
		return start <= search->last;
	}
	if (strncmp(line, "VmFlags:", 8) == 0)
		end_mapping(search, line);
	return true;
}

void sf_pages_find_stacks(int32_t tid, struct sf_pages_stack *stacks, size_t n)
{
	struct search search = { .stacks = stacks, .n = n };
	char path[64];

	for (size_t i = 0; i < n; i++) {
		stacks[i].start = stacks[i].end = 0;
		stacks[i].is_plain = false;
		if (stacks[i].sp > search.last)
			search.last = stacks[i].sp;
	}
	snprintf(path, sizeof(path), "/proc/%d/smaps", tid);
	sf_proc_lines(path, search_line, &search);
}

bool sf_pages_fill(int32_t tid, uint64_t addr, uint64_t end)
{
	const uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
	struct iovec there[MAX_FILLED];
	uint8_t bytes[MAX_FILLED];
	size_t n = 0;

	for (; addr < end && n < MAX_FILLED; addr = (addr / page + 1) * page)
		there[n++] = (struct iovec){ (void *)(uintptr_t)addr, 1 };
	return process_vm_readv(tid, &(struct iovec){ bytes, n }, 1, there, n, 0) == (ssize_t)n;
}
