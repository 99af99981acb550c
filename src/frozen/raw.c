/* SPDX-License-Identifier: Apache-2.0 */
/* The clocks, the CPU number and the futex by system calls or by the vDSO, without libc. */
#include <fcntl.h>
#include <linux/futex.h>
#include <stddef.h>
#include <string.h>

#include "frozen/raw.h"

#include "frozen/frozen.h"

#define NS_PER_S UINT64_C(1000000000)

struct sf_raw_vdso sf_raw_vdso;

static uint64_t to_ns(const struct timespec *time)
{
	return (uint64_t)time->tv_sec * NS_PER_S + (uint64_t)time->tv_nsec;
}

/* Zero when the kernel does not answer: no caller can do better. */
static uint64_t clock_ns(clockid_t clock)
{
	struct timespec now = { 0 };

	sf_raw2(SYS_clock_gettime, clock, &now);
	return to_ns(&now);
}

uint64_t sf_raw_now_ns(void)
{
	sf_vdso_clock_fn *const call = atomic_load_explicit(&sf_raw_vdso.clock, memory_order_relaxed);
	struct timespec now;

	return call && call(CLOCK_MONOTONIC, &now) == 0 ? to_ns(&now) : clock_ns(CLOCK_MONOTONIC);
}

bool sf_raw_cpu(uint32_t *ret)
{
	sf_vdso_cpu_fn *const call = atomic_load_explicit(&sf_raw_vdso.cpu, memory_order_relaxed);

	return (call && call(ret, NULL, NULL) == 0) || sf_raw3(SYS_getcpu, ret, 0, 0) == 0;
}

uint64_t sf_raw_thread_cpu_ns(void)
{
	return clock_ns(CLOCK_THREAD_CPUTIME_ID);
}

uint64_t sf_raw_process_cpu_ns(void)
{
	return clock_ns(CLOCK_PROCESS_CPUTIME_ID);
}

#define FOLDER "/proc/self/task/"
#define FILE_NAME "/schedstat"

static void put_path(char ret[48], int32_t tid)
{
	char digits[10];
	unsigned n = 0;
	char *at = ret + sizeof(FOLDER) - 1;

	memcpy(ret, FOLDER, sizeof(FOLDER) - 1);
	for (uint32_t left = (uint32_t)tid; left || !n; left /= 10)
		digits[n++] = (char)('0' + left % 10);
	while (n)
		*at++ = digits[--n];
	memcpy(at, FILE_NAME, sizeof(FILE_NAME));
}

/* "cpu_ns wait_ns switches" (kernel: fs/proc/base.c, proc_pid_schedstat) */
bool sf_raw_wait_ns(int32_t tid, uint64_t *ret)
{
	char path[48], text[96];
	long fd, n, i = 0;

	put_path(path, tid);
	fd = sf_raw4(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC, 0);
	if (fd < 0)
		return false;
	n = sf_raw3(SYS_read, fd, text, sizeof(text));
	sf_raw1(SYS_close, fd);
	while (i < n && text[i] != ' ')
		i++;
	*ret = 0;
	for (i++; i < n && text[i] >= '0' && text[i] <= '9'; i++)
		*ret = *ret * 10 + (uint64_t)(text[i] - '0');
	return n > 0;
}

/* Private futexes: the words are in memory of one process, and are not looked up by file. */
void sf_raw_futex_wait(const void *word, uint32_t value, uint64_t timeout_ns)
{
	const struct timespec timeout = {
		.tv_sec = (time_t)(timeout_ns / NS_PER_S),
		.tv_nsec = (long)(timeout_ns % NS_PER_S),
	};

	sf_raw4(SYS_futex, word, FUTEX_WAIT | FUTEX_PRIVATE_FLAG, value,
		timeout_ns ? &timeout : NULL);
}

void sf_raw_futex_wake(const void *word, int n)
{
	sf_raw3(SYS_futex, word, FUTEX_WAKE | FUTEX_PRIVATE_FLAG, n);
}
