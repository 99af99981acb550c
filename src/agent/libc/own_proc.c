/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads /proc/self/task with raw system calls. It takes no lock and allocates nothing, so the
 * sampler may call it while threads are held.
 */
#include "agent/libc/own_proc.h"

#include <dirent.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "frozen/raw.h"
#include "frozen/still.h"

#define FOLDER "/proc/self/task/"

/* getdents64(2) */
struct entry {
	uint64_t inode;
	int64_t  offset;
	uint16_t size;
	uint8_t  type;
	char     name[];
};

static unsigned digit(char c)
{
	if (c >= '0' && c <= '9')
		return (unsigned)(c - '0');
	c |= 0x20;
	return c >= 'a' && c <= 'f' ? (unsigned)(c - 'a') + 10 : 99;
}

static uint64_t number(const char **p, unsigned base)
{
	uint64_t value = 0;

	while (**p == ' ' || **p == '\t')
		(*p)++;
	if (base == 16 && (*p)[0] == '0' && (*p)[1] == 'x')
		*p += 2;
	for (; digit(**p) < base; (*p)++)
		value = value * base + digit(**p);
	return value;
}

static void each(const char *entries, long n, sf_own_thread_fn *fn, void *arg)
{
	for (long at = 0; at < n;) {
		const struct entry *entry = (const struct entry *)(const void *)(entries + at);
		const char *name = entry->name;
		int32_t tid = (int32_t)number(&name, 10);

		if (tid > 0)
			fn(arg, tid);
		at += entry->size;
	}
}

bool sf_own_threads(sf_own_thread_fn *fn, void *arg)
{
	_Alignas(8) char entries[8192];
	long fd = sf_raw4(SYS_openat, AT_FDCWD, FOLDER, O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
	long n;

	if (fd < 0)
		return false;
	while ((n = sf_raw3(SYS_getdents64, fd, entries, sizeof(entries))) > 0)
		each(entries, n, fn, arg);
	sf_raw1(SYS_close, fd);
	return n == 0;
}

/*
 * A folder has a link for each folder in it, and two of its own (kernel: fs/proc/base.c,
 * proc_task_getattr).
 */
uint64_t sf_own_thread_count(void)
{
	struct stat status;

	return sf_raw4(SYS_newfstatat, AT_FDCWD, FOLDER, &status, 0) == 0 ? status.st_nlink : 0;
}

#define LINKS_OF_ONE 3 /* two links are the folder's */

bool sf_own_has_others(unsigned n_own)
{
	return sf_own_thread_count() > LINKS_OF_ONE + n_own;
}

bool sf_own_has_none(unsigned n_own)
{
	return sf_own_thread_count() == LINKS_OF_ONE + n_own && sf_own_letter((int32_t)sf_raw0(SYS_getpid)) == 'Z';
}

static char *put_text(char *at, const char *text)
{
	size_t size = strlen(text);

	memcpy(at, text, size + 1);
	return at + size;
}

static char *put_number(char *at, uint32_t value)
{
	char digits[12];
	int n = 0;

	do
		digits[n++] = (char)('0' + value % 10);
	while (value /= 10);
	while (n)
		*at++ = digits[--n];
	*at = 0;
	return at;
}

void sf_own_fd_path(int fd, char ret[SF_OWN_FD_PATH])
{
	put_number(put_text(ret, "/proc/self/fd/"), (uint32_t)fd);
}

static long open_own(int32_t tid, const char *name)
{
	char path[64], *at = put_text(path, FOLDER);

	at = put_text(put_number(at, (uint32_t)tid), "/");
	put_text(at, name);
	return sf_raw4(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC, 0);
}

bool sf_own_read(int32_t tid, const char *name, char *ret, size_t size)
{
	long fd = open_own(tid, name), n;

	if (fd < 0)
		return false;
	n = sf_raw3(SYS_read, fd, ret, size - 1);
	sf_raw1(SYS_close, fd);
	ret[n > 0 ? n : 0] = 0;
	return n > 0;
}

void sf_own_name(int32_t tid, char *ret, size_t size)
{
	if (!sf_own_read(tid, "comm", ret, size))
		*ret = 0;
	ret[strcspn(ret, "\n")] = 0;
}

/* The letter behind the name, which may hold anything. */
char sf_own_letter(int32_t tid)
{
	char text[512];
	const char *p;

	if (!sf_own_read(tid, "stat", text, sizeof(text)))
		return 0;
	p = strrchr(text, ')');
	return p && p[1] ? p[2] : 0;
}

/* The value of a field, which comes in pieces. */
struct search {
	const char *field;
	size_t matched;    /* so many bytes of the field stand before what comes next */
	char *ret;
	size_t size, used;
};

/* True: the value has ended. The field's first byte, the end of a line, is at no other place in it. */
static bool take(struct search *search, char c)
{
	if (search->field[search->matched]) {
		search->matched = c == search->field[search->matched] ? search->matched + 1 : c == *search->field;
		return false;
	}
	if (c != '\n' && search->used + 1 < search->size)
		search->ret[search->used++] = c;
	return c == '\n';
}

bool sf_own_status(int32_t tid, const char *field, char *ret, size_t size)
{
	struct search search = { .field = field, .ret = ret, .size = size };
	char piece[512];
	bool ended = false;
	long fd = open_own(tid, "status"), n;

	if (fd < 0)
		return false;
	while (!ended && (n = sf_raw3(SYS_read, fd, piece, sizeof(piece))) > 0) {
		for (long i = 0; i < n && !ended; i++)
			ended = take(&search, piece[i]);
	}
	sf_raw1(SYS_close, fd);
	ret[search.used] = 0;
	return ended;
}

/* Whether the signal is in the set that this field of a thread's status has; `unknown`: the field cannot be read. */
static bool is_in_set(int32_t tid, const char *field, int signal, bool unknown)
{
	char text[32];
	const char *p = text;

	if (!sf_own_status(tid, field, text, sizeof(text)))
		return unknown;
	return number(&p, 16) >> (signal - 1) & 1;
}

bool sf_own_blocks(int32_t tid, int signal)
{
	return is_in_set(tid, "\nSigBlk:", signal, false);
}

bool sf_own_process_has_pending(int signal)
{
	return is_in_set((int32_t)sf_raw0(SYS_gettid), "\nShdPnd:", signal, true);
}

/*
 * "running", or "nr a0 a1 a2 a3 a4 a5 sp pc", or "-1 sp pc" (kernel: fs/proc/base.c,
 * proc_pid_syscall).
 */
bool sf_own_place(int32_t tid, struct sf_own_place *ret)
{
	char text[256];
	const char *p = text;

	*ret = (struct sf_own_place){ .syscall = SF_SYSCALL_FAULT };
	if (!sf_own_read(tid, "syscall", text, sizeof(text)))
		return false;
	ret->awake = *text == 'r';
	if (ret->awake)
		return true;
	if (*text == '-') {
		p = text + 2;
	} else {
		ret->syscall = (int32_t)number(&p, 10);
		for (int i = 0; i < 6; i++)
			ret->args[i] = number(&p, 16);
	}
	ret->sp = number(&p, 16);
	ret->pc = number(&p, 16);
	return true;
}
