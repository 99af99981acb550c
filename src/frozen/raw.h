/* SPDX-License-Identifier: Apache-2.0 */
/*
 * System calls without libc: errno is not touched, and no symbol is needed from outside. The result
 * is what the kernel gives: a value, or a negated error number. Signal-safe.
 *
 * The instruction is in the host's header (host_*.h).
 */
#ifndef SF_FROZEN_RAW_H
#define SF_FROZEN_RAW_H

#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <time.h>

#include "frozen/arch.h"

#include SF_HOST_HEADER /* sf_raw6 */

#define sf_raw0(number) sf_raw6(number, 0, 0, 0, 0, 0, 0)
#define sf_raw1(number, a) sf_raw6(number, (long)(a), 0, 0, 0, 0, 0)
#define sf_raw2(number, a, b) sf_raw6(number, (long)(a), (long)(b), 0, 0, 0, 0)
#define sf_raw3(number, a, b, c) sf_raw6(number, (long)(a), (long)(b), (long)(c), 0, 0, 0)
#define sf_raw4(number, a, b, c, d)                                                                \
	sf_raw6(number, (long)(a), (long)(b), (long)(c), (long)(d), 0, 0)

/*
 * Functions of the vDSO, which the kernel maps into each process (vdso(7)). They take 20 ns, where a system call takes
 * 1 us on some virtual machines. Ordinary code finds them before a handler may run (agent/libc/vdso.h). NULL: a system call is
 * made instead.
 */
typedef int sf_vdso_clock_fn(clockid_t clock, struct timespec *ret);
typedef long sf_vdso_cpu_fn(unsigned *cpu_ret, unsigned *node_ret, void *unused);

struct sf_raw_vdso {
	sf_vdso_clock_fn *_Atomic clock;
	sf_vdso_cpu_fn *_Atomic cpu;
};

extern struct sf_raw_vdso sf_raw_vdso;

bool sf_raw_cpu(uint32_t *ret);       /* that the calling thread is on, by now perhaps on another; false: unknown */
uint64_t sf_raw_now_ns(void);         /* CLOCK_MONOTONIC */
uint64_t sf_raw_thread_cpu_ns(void);  /* CPU time of the calling thread */
uint64_t sf_raw_process_cpu_ns(void); /* CPU time of all threads of the process */

/*
 * How long this thread of the process was ready without a CPU, in all, from
 * /proc/self/task/TID/schedstat: some 2 us. Takes a descriptor of the calling thread's table
 * meanwhile. False: gone, or the kernel or the file system does not show it.
 */
bool sf_raw_wait_ns(int32_t tid, uint64_t *ret);

/* Sleeps while *word == value, at most timeout_ns (0: no limit), or until a wake or a signal. */
void sf_raw_futex_wait(const void *word, uint32_t value, uint64_t timeout_ns);
void sf_raw_futex_wake(const void *word, int n);

#endif
