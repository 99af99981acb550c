/* SPDX-License-Identifier: Apache-2.0 */
/* Reads a process from /proc (threads, name, CPU time), reads its memory, and signals it. */
#include "os/process.h"

#include <ctype.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/folder.h"
#include "base/output.h"
#include "os/linux/proc.h"
#include "os/rights.h"

#define MAX_ENVIRONMENT ((size_t)2 << 20)

static bool add_numbers(const char *path, struct sf_ids *ret)
{
	SF_CLEANUP(folder) struct sf_folder folder;
	const char *name;

	if (!sf_folder_open(&folder, AT_FDCWD, path))
		return false;
	while ((name = sf_folder_next(&folder))) {
		if (isdigit((unsigned char)*name) && !sf_vec_push(&ret->ids, (int32_t)atoi(name)))
			return false;
	}
	return true;
}

bool sf_process_threads(int32_t pid, struct sf_ids *ret)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/task", pid);
	return add_numbers(path, ret);
}

bool sf_process_all(struct sf_ids *ret)
{
	return add_numbers("/proc", ret);
}

/* 0 when the process is gone. */
static uint64_t stat_field(int32_t pid, int number)
{
	char text[SF_PROC_STAT];

	return sf_proc_stat_field(sf_proc_stat(pid, 0, text), number);
}

/* /proc/self is a link to this process's pid in the pid namespace for which /proc was mounted (kernel: fs/proc/self.c). */
static bool shows_other_numbers(void)
{
	char number[16] = "";

	return readlink("/proc/self", number, sizeof(number) - 1) > 0 && atoi(number) != (int)getpid();
}

bool sf_process_check_system(struct sf_error *err)
{
	const bool is_there = access("/proc/self/stat", R_OK) == 0;

	if (is_there && !shows_other_numbers())
		return true;
	if (is_there)
		sf_fail(err, SF_E_UNSUPPORTED,
			"/proc is of another pid namespace: its numbers are those of other processes");
	else
		sf_fail_os(err, "cannot read /proc/self/stat");
	return sf_fail_hint(err, "stillframe finds processes in /proc: mount -t proc proc /proc");
}

void sf_process_rights(char *ret, size_t size)
{
	const unsigned missing = sf_rights_missing(SF_ALL_RIGHTS);
	char with[96], without[96];

	sf_rights_text(SF_ALL_RIGHTS & ~missing, with, sizeof(with));
	sf_rights_text(missing, without, sizeof(without));
	snprintf(ret, size, "user id %d, %s%s%s%s%s: %s", (int)geteuid(), *with ? "with " : "", with, *with && *without ? ", " : "",
		 *without ? "without " : "", without, missing & SF_RIGHT_BIT(TRACE) ? "your own processes" : "every process of this container");
}

bool sf_process_opens_map_files(void)
{
	SF_CLEANUP(folder) struct sf_folder folder;
	SF_CLEANUP(close) int fd = -1;
	const char *name;

	if (!sf_folder_open(&folder, AT_FDCWD, "/proc/self/map_files"))
		return false;
	while (fd < 0 && (name = sf_folder_next(&folder)))
		fd = openat(folder.fd, name, O_RDONLY | O_CLOEXEC);
	return fd >= 0;
}

/* /proc may show nobody the processes of others, not even that they are there (proc(5), hidepid). */
static bool is_hidden(int32_t pid)
{
	return kill(pid, 0) == 0 || errno == EPERM;
}

static bool fail_not_there(int32_t pid, struct sf_error *err)
{
	if (is_hidden(pid)) {
		sf_fail(err, SF_E_DENIED, "cannot look at pid %d: /proc hides it from this user (hidepid)", pid);
		return sf_rights_hint_at_trace(err);
	}
	sf_fail(err, SF_E_GONE, "cannot look at pid %d: there is no such process", pid);
	return sf_fail_hint(err, "`ps -e` lists the processes that run now.");
}

bool sf_process_check(int32_t pid, struct sf_error *err)
{
	char letter = sf_proc_letter(pid, pid);
	struct sf_program program;
	char size[32];

	if (!letter && !sf_process_check_system(err))
		return false;
	if (!letter)
		return fail_not_there(pid, err);
	if (!sf_process_program(pid, &program))
		return sf_fail(err, SF_E_GONE, "cannot look at pid %d: it has ended (a zombie)",
			       pid);
	if (letter == 'Z')
		return true; /* its first thread has ended, others run */
	if (!sf_proc_status(pid, 0, "VmSize:", size, sizeof(size)))
		return sf_fail(err, SF_E_UNSUPPORTED,
			       "cannot look at pid %d: it is a thread of the kernel", pid);
	return true;
}

/*
 * The kernel asks for the right to trace where it shows a process's root folder (ptrace(2), PTRACE_MODE_READ_FSCREDS). A
 * process that ends meanwhile is no failure: nobody refuses anything.
 */
bool sf_process_check_reading(int32_t pid, struct sf_error *err)
{
	char path[64], folder[4];

	snprintf(path, sizeof(path), "/proc/%d/root", sf_process_live_id(pid));
	if (readlink(path, folder, sizeof(folder)) >= 0 || (errno != EACCES && errno != EPERM))
		return true;
	sf_fail_os(err, "cannot read the files that pid %d runs", pid);
	return sf_rights_hint_at_trace(err);
}

int32_t sf_process_live_id(int32_t pid)
{
	struct sf_ids ids = { 0 };
	int32_t live = pid;

	if (sf_proc_letter(pid, pid) != 'Z')
		return pid;
	sf_process_threads(pid, &ids);
	for (size_t i = 0; i < ids.ids.n && live == pid; i++) {
		if (sf_proc_letter(pid, ids.ids.items[i]) != 'Z')
			live = ids.ids.items[i];
	}
	sf_vec_deinit(&ids.ids);
	return live;
}

void sf_process_name(int32_t pid, char *ret, size_t size)
{
	if (!sf_proc_read(pid, 0, "comm", ret, size))
		*ret = 0;
	ret[strcspn(ret, "\n")] = 0;
	sf_sanitize(ret);
}

void sf_process_command(int32_t pid, char *ret, size_t size)
{
	int fd = sf_proc_open(pid, 0, "cmdline");
	ssize_t n = fd >= 0 ? read(fd, ret, size - 1) : -1;

	if (fd >= 0)
		close(fd);
	if (n < 0)
		n = 0;
	while (n > 0 && !ret[n - 1])
		n--;
	ret[n] = 0;
	for (ssize_t i = 0; i < n; i++) {
		if (!ret[i])
			ret[i] = ' ';
	}
	sf_sanitize(ret);
}

uint32_t sf_process_user(int32_t pid)
{
	char text[64] = "";
	uint32_t real, effective;

	if (!sf_proc_status(pid, 0, "Uid:", text, sizeof(text)) || sscanf(text, "%u %u", &real, &effective) != 2)
		return UINT32_MAX;
	return effective;
}

/* PF_KTHREAD of linux/sched.h, in field 9 (proc_pid_stat(5)). */
bool sf_process_is_kernel(int32_t pid)
{
	return stat_field(pid, 9) & 0x200000;
}

/*
 * A process's CPU clock, from its pid (kernel: include/linux/posix-timers_types.h, CPUCLOCK_SCHED).
 */
bool sf_process_cpu(int32_t pid, uint64_t *ns_ret)
{
	struct timespec time;

	if (clock_gettime((clockid_t)((~(unsigned)pid << 3) | 2), &time) != 0)
		return false;
	*ns_ret = (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
	return true;
}

/*
 * Fields of proc_pid_stat(5): 3 state, 20 threads, 22 start time, 26 start of code, 28 of the
 * stack. A zombie without other threads is gone, though its parent (us, perhaps) has yet to reap
 * it. No threads at all: at this moment another thread takes over the pid (exec, de_thread() in the
 * kernel's fs/exec.c), or the process is being reaped. By the first thread's own file: for the process's the
 * kernel adds up the times of all threads.
 */
bool sf_process_program(int32_t pid, struct sf_program *ret)
{
	char text[SF_PROC_STAT];
	const char *p;
	int tries = 10;

	do
		p = sf_proc_stat(pid, pid, text);
	while (p && sf_proc_stat_field(p, 20) == 0 && --tries > 0);
	if (!p || (strchr("ZX", *p) && sf_proc_stat_field(p, 20) <= 1))
		return false;
	*ret = (struct sf_program){
		.started = sf_proc_stat_field(p, 22),
		.code = sf_proc_stat_field(p, 26),
		.stack = sf_proc_stat_field(p, 28),
		.n_threads = (uint32_t)sf_proc_stat_field(p, 20),
	};
	return ret->started != 0;
}

/*
 * The first thread has begun to exit (PF_EXITING, PF_SIGNALED in field 9), or has SIGKILL pending (field 31), which each thread
 * gets when the process is killed or another thread exits it (kernel/signal.c, complete_signal() and zap_other_threads()).
 */
bool sf_process_is_ending(int32_t pid)
{
	char text[SF_PROC_STAT];
	const char *stat = sf_proc_stat(pid, pid, text);

	return stat && ((sf_proc_stat_field(stat, 9) & 0x404) || (sf_proc_stat_field(stat, 31) & UINT64_C(1) << (SIGKILL - 1)));
}

/* The unit of several fields of /proc/PID/stat, in nanoseconds: the C library's clock tick (proc_pid_stat(5)). */
static uint64_t tick_ns(void)
{
	return 1000000000u / (uint64_t)sysconf(_SC_CLK_TCK);
}

uint64_t sf_process_start_clock(void)
{
	struct timespec now = { 0 };

	clock_gettime(CLOCK_BOOTTIME, &now);
	return ((uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec) / tick_ns();
}

/* Fields 16 and 17. */
uint64_t sf_process_children_cpu(int32_t pid)
{
	return (stat_field(pid, 16) + stat_field(pid, 17)) * tick_ns();
}

int32_t sf_process_parent(int32_t pid)
{
	return (int32_t)stat_field(pid, 4);
}

/* The header of its executable; false when there is none, or it cannot be read. */
static bool read_header(int32_t pid, Elf64_Ehdr *ret)
{
	int fd = sf_proc_open(pid, 0, "exe");
	ssize_t n = fd >= 0 ? read(fd, ret, sizeof(*ret)) : -1;

	if (fd >= 0)
		close(fd);
	return n == sizeof(*ret) && memcmp(ret->e_ident, ELFMAG, SELFMAG) == 0;
}

const struct sf_arch *sf_process_arch(int32_t pid)
{
	Elf64_Ehdr header;

	if (!read_header(pid, &header) || header.e_ident[EI_CLASS] != ELFCLASS64)
		return NULL;
	return sf_arch_by_machine(header.e_machine);
}

/* The header of a 32-bit file is shorter, but the file is not. */
bool sf_process_is_32_bit(int32_t pid)
{
	Elf64_Ehdr header;

	return read_header(pid, &header) && header.e_ident[EI_CLASS] == ELFCLASS32;
}

bool sf_fail_32_bit(const char *name, int32_t pid, struct sf_error *err)
{
	if (pid)
		sf_fail(err, SF_E_UNSUPPORTED, "cannot sample pid %d (%s): it runs a 32-bit program", pid, name);
	else
		sf_fail(err, SF_E_UNSUPPORTED, "cannot sample %s: it is a 32-bit program", name);
	return sf_fail_hint(err, "stillframe reads the stacks of 64-bit programs only; gdb and perf read those of 32-bit ones.");
}

bool sf_process_check_width(int32_t pid, struct sf_error *err)
{
	char name[64];

	if (!sf_process_is_32_bit(pid))
		return true;
	sf_process_name(pid, name, sizeof(name));
	return sf_fail_32_bit(name, pid, err);
}

size_t sf_process_read(int32_t pid, void *ret, uint64_t addr, size_t size)
{
	struct iovec local = { .iov_base = ret, .iov_len = size };
	struct iovec remote = { .iov_base = (void *)(uintptr_t)addr, .iov_len = size };
	ssize_t n = process_vm_readv(pid, &local, 1, &remote, 1, 0);

	return n > 0 ? (size_t)n : 0;
}

size_t sf_process_read_live(int32_t pid, void *ret, uint64_t addr, size_t size)
{
	const size_t n = sf_process_read(pid, ret, addr, size);

	return n || errno != ESRCH ? n : sf_process_read(sf_process_live_id(pid), ret, addr, size);
}

/* Nothing is mapped at address 0: there a process that has memory fails with EFAULT, and one that has none with ESRCH. */
bool sf_process_is_over(int32_t pid)
{
	char byte;

	return !sf_process_read_live(pid, &byte, 0, 1) && errno == ESRCH;
}

size_t sf_process_write(int32_t pid, uint64_t addr, const void *bytes, size_t size)
{
	struct iovec local = { .iov_base = (void *)(uintptr_t)bytes, .iov_len = size };
	struct iovec remote = { .iov_base = (void *)(uintptr_t)addr, .iov_len = size };
	ssize_t n = process_vm_writev(pid, &local, 1, &remote, 1, 0);

	return n > 0 ? (size_t)n : 0;
}

bool sf_process_environment_has(int32_t pid, const char *text)
{
	SF_CLEANUP(free) char *environment = malloc(MAX_ENVIRONMENT);
	const ssize_t size = environment ? sf_proc_bytes(pid, 0, "environ", environment, MAX_ENVIRONMENT) : -1;

	return size > 0 && memmem(environment, (size_t)size, text, strlen(text));
}

int sf_process_open(int32_t pid)
{
	return (int)syscall(SYS_pidfd_open, pid, 0);
}

bool sf_process_signal(int fd, int32_t pid, int number)
{
	if (fd < 0)
		return kill(pid, number) == 0;
	return syscall(SYS_pidfd_send_signal, fd, number, NULL, 0) == 0;
}
