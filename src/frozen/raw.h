/* SPDX-License-Identifier: Apache-2.0 */
/*
 * System calls without libc: errno is not touched, and no symbol is needed from outside. The result
 * is what the kernel gives: a value, or a negated error number. Signal-safe.
 *
 * x86-64: syscall(2), "Architecture calling conventions"; aarch64: the same page. Other processors
 * get -ENOSYS for everything: there is no in-process engine on them.
 */
#ifndef SF_FROZEN_RAW_H
#define SF_FROZEN_RAW_H

#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <time.h>

#if defined(__x86_64__)
static inline long sf_raw6(long number, long a, long b, long c, long d, long e, long f)
{
	register long r10 __asm__("r10") = d;
	register long r8 __asm__("r8") = e;
	register long r9 __asm__("r9") = f;
	long ret;

	__asm__ volatile("syscall"
			 : "=a"(ret)
			 : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
			 : "rcx", "r11", "memory");
	return ret;
}
#elif defined(__aarch64__)
static inline long sf_raw6(long number, long a, long b, long c, long d, long e, long f)
{
	register long x8 __asm__("x8") = number;
	register long x0 __asm__("x0") = a;
	register long x1 __asm__("x1") = b;
	register long x2 __asm__("x2") = c;
	register long x3 __asm__("x3") = d;
	register long x4 __asm__("x4") = e;
	register long x5 __asm__("x5") = f;

	__asm__ volatile("svc 0"
			 : "+r"(x0)
			 : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5)
			 : "memory");
	return x0;
}
#else
static inline long sf_raw6(long number, long a, long b, long c, long d, long e, long f)
{
	(void)number, (void)a, (void)b, (void)c, (void)d, (void)e, (void)f;
	return -ENOSYS;
}
#endif

#define sf_raw0(number) sf_raw6(number, 0, 0, 0, 0, 0, 0)
#define sf_raw1(number, a) sf_raw6(number, (long)(a), 0, 0, 0, 0, 0)
#define sf_raw2(number, a, b) sf_raw6(number, (long)(a), (long)(b), 0, 0, 0, 0)
#define sf_raw3(number, a, b, c) sf_raw6(number, (long)(a), (long)(b), (long)(c), 0, 0, 0)
#define sf_raw4(number, a, b, c, d)                                                                \
	sf_raw6(number, (long)(a), (long)(b), (long)(c), (long)(d), 0, 0)

/*
 * What the kernel maps into a process to be called there (vdso(7)): 20 ns, where a system call takes 1 us on some virtual
 * machines. Found by ordinary code before a handler may run (agent/vdso.h). NULL: the kernel is asked.
 */
typedef int sf_vdso_clock_fn(clockid_t clock, struct timespec *ret);
typedef long sf_vdso_cpu_fn(unsigned *cpu_ret, unsigned *node_ret, void *unused);

struct sf_raw_vdso {
	sf_vdso_clock_fn *_Atomic clock;
	sf_vdso_cpu_fn *_Atomic cpu;
};

extern struct sf_raw_vdso sf_raw_vdso;

bool sf_raw_cpu(uint32_t *ret);       /* that the calling thread is on, by now perhaps on another; false: it is not told */
uint64_t sf_raw_now_ns(void);         /* CLOCK_MONOTONIC */
uint64_t sf_raw_thread_cpu_ns(void);  /* CPU time of the calling thread */
uint64_t sf_raw_process_cpu_ns(void); /* CPU time of all threads of the process */

/*
 * How long this thread of the process was ready without a CPU, in all, from
 * /proc/self/task/TID/schedstat: some 2 us. Takes a descriptor of the calling thread's table
 * meanwhile. False: gone, or the kernel or the file system does not tell.
 */
bool sf_raw_wait_ns(int32_t tid, uint64_t *ret);

/* Sleeps while *word == value, at most timeout_ns (0: no limit), or until a wake or a signal. */
void sf_raw_futex_wait(const void *word, uint32_t value, uint64_t timeout_ns);
void sf_raw_futex_wake(const void *word, int n);

#endif
