/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The cause of a wait, by the kernel's frames of a thread that leaves its CPU: the system call or the page fault that
 * the thread is in, and the thing that it needs there. The outermost frames name the call, since each call has a
 * function of its own (`__x64_sys_futex`); where the compiler made a jump of that function's last call, the function
 * that it jumped to stands there (`ksys_read`). Inner frames say that it waits for a device or for a lock of the
 * kernel.
 *
 * Only functions that say something are kept of the kernel's list. Without that list nothing is known of any frame.
 */
#ifndef SF_CAPTURE_PERF_WAITS_H
#define SF_CAPTURE_PERF_WAITS_H

#include "base/vec.h"
#include "frozen/still.h"
#include "os/kernel_symbols.h"

/* A function of the kernel, from `start` up to `end`. */
struct sf_perf_wait_function {
	uint64_t start, end;
	uint8_t  kind;           /* waits.c */
	int32_t  syscall;
};

struct sf_perf_waits {
	SF_VEC(struct sf_perf_wait_function) functions; /* by address */
};

struct sf_perf_wait {
	int32_t syscall;         /* number, or SF_SYSCALL_FAULT or SF_SYSCALL_UNTOLD */
	uint8_t cause;           /* enum sf_cause */
	bool    is_stopped;      /* by job control, a debugger or the freezer of its control group */
	bool    has_ended;       /* the thread never runs again */
};

/* Keeps the functions of these that say something. False: no memory. */
bool sf_perf_waits_take(struct sf_perf_waits *waits, const struct sf_kernel_symbols *symbols);
void sf_perf_waits_deinit(struct sf_perf_waits *waits);

/* `chain`: the kernel's frames, innermost first. */
void sf_perf_waits_find(const struct sf_perf_waits *waits, const uint64_t *chain, size_t n, struct sf_perf_wait *ret);

#endif
