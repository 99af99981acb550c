/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Holds threads of other processes, each for as short a time as possible: request a stop, wait for it, read, release.
 * No tracer is attached between two holds. So signals, debuggers, exec, fork and exit of the target work as without
 * stillframe, and if stillframe dies the kernel releases the thread.
 *
 * Linux: PTRACE_SEIZE and PTRACE_INTERRUPT ... PTRACE_DETACH (ptrace(2)). A thread that stopped for a signal gets it
 * at its release, and a system call that only the stop interrupted is restarted.
 *
 * Only one thread of stillframe holds others; all calls come from it. While it holds a thread, it follows the rules of
 * frozen code.
 */
#ifndef SF_OS_HOLD_H
#define SF_OS_HOLD_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "frozen/arch.h"

enum sf_hold {
	SF_HOLD_REQUESTED,   /* it will stop: sf_hold_wait() returns it then */
	SF_HOLD_GONE,
	SF_HOLD_BUSY,    /* another tracer has it */
	SF_HOLD_DENIED,
	SF_HOLD_BARRED,  /* its process is in exec, or a stop of this process waits: try again at the next tick */
};

/*
 * Calls fn(arg) on a new thread and waits for it. All other functions here must be called in that thread.
 * A thread whose stop was requested may stop much later, when no code expects it. The kernel releases all such
 * threads for good when the thread that requested the stops ends. If the new thread hangs in the kernel, the
 * process ends (own_thread.h): otherwise the threads that it holds would not run again.
 */
bool sf_hold_run(void (*fn)(void *arg), void *arg, struct sf_error *err);

/*
 * Job control (Ctrl-Z) stops all threads of this process at once. A thread that is held then, or whose stop is requested, would
 * stay stopped as long. So such a stop waits from a request on until this call, or until sf_hold_wait() finds that no thread is
 * held or requested. The call is made only while none is. (SIGSTOP and the freezer of control groups cannot wait.)
 */
void sf_hold_let_stop(void);

/* Requests the stop of a thread, and does not wait for it. Returns at the latest when the caller's alarm (clock.h) rings. */
enum sf_hold sf_hold_request(int32_t tid);

/* The result for a thread whose stop was requested, or for a child of the caller. */
struct sf_held {
	int32_t tid;
	bool    stopped;     /* release it. Else it has ended, with this status: */
	int     status;      /* as waitpid gives it */
	int     signal;      /* a signal that it was about to take; it gets it on release */
	bool    ours;        /* it stopped for the request, and not for a signal */
	bool    is_32_bit;   /* sf_hold_registers found it in 32-bit code: there is nothing to read */
	bool    read;        /* sf_hold_registers was called, and ... */
	bool    to_mend;     /* ... found a system call that failed only because of the hold */
	int32_t syscall;     /* the thread returns from this call or starts it again; or SF_SYSCALL_NONE */
	bool    in_wait;     /* the thread was about to sleep in that call, or that call only waits (sf_syscall_only_waits) */
};

/* Whether the thread was in a job control stop, to which it returns at its release. */
static inline bool sf_held_in_job_stop(const struct sf_held *held)
{
	return held->stopped && !held->ours && !held->signal;
}

/*
 * The next thread that has stopped or ended. False when `wait` is false and there is none now, when
 * the caller's alarm (clock.h) rang, or when no stop is requested.
 */
bool sf_hold_wait(struct sf_held *ret, bool wait);

/* The registers of a held thread; false when it was killed meanwhile, or runs 32-bit code. Signal-safe. */
bool sf_hold_registers(struct sf_held *held, struct sf_regs *ret);

/* Releases the thread. Signal-safe. */
void sf_hold_release(struct sf_held *held);

#define SF_HOLD_OTHERS_NS UINT64_C(200000000) /* a thread that another stillframe holds is free again sooner, also on a busy machine and without a nice value */

/*
 * Whether threads of a process could be held, without a hold: SF_HOLD_REQUESTED when they could. Waits out the holds of
 * another stillframe.
 */
enum sf_hold sf_hold_allowed(int32_t pid);

/* Whether a system-call filter answers ptrace in the kernel's place. */
bool sf_hold_is_filtered(void);

/* kernel.yama.ptrace_scope: above 0, users other than root hold only their own descendants. 0 where there is no Yama. */
int sf_hold_scope(void);

/* Explains SF_HOLD_DENIED or BUSY for this thread, and how to avoid it: fills err, returns false. */
bool sf_hold_explain(int32_t pid, int32_t tid, enum sf_hold result, struct sf_error *err);

#endif
