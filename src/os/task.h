/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A thread of another process, by what the system shows of it: whether it ran, for how long, what it does now, where it
 * sleeps. Nothing here stops, wakes or signals it.
 *
 * Linux: the files of /proc/PID/task/TID (proc(5)). One thread at a time per task.
 */
#ifndef SF_OS_TASK_H
#define SF_OS_TASK_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "frozen/still.h"

#define SF_TASK_NAME 16 /* bytes, with the zero */

struct sf_task {
	int32_t pid, tid;
	int run_fd;      /* kept open: read at every tick */
	int look_fd;     /* kept open; -1 when the kernel or its policy refuses */
	int stat_fd;     /* kept open from the first sf_task_cpu on; -1 before */
	int turn_fd;     /* the same from the first sf_task_turn_ns on */
};

/* With no file open. */
#define SF_TASK_CLOSED(pid_, tid_) ((struct sf_task){ .pid = (pid_), .tid = (tid_), .run_fd = -1, .look_fd = -1, .stat_fd = -1, .turn_fd = -1 })

/* How much it ran: it has not run between two looks in which `switches` is equal. */
struct sf_task_run {
	uint64_t cpu_ns;   /* on a CPU; may lag by a scheduler tick while it runs */
	uint64_t wait_ns;  /* ready, waiting for a CPU */
	uint64_t switches; /* times that it was put on a CPU */
};

/* The state of a thread at one moment. */
struct sf_task_look {
	uint8_t  state;    /* enum sf_state; RUNNING also when it may only be runnable */
	bool     placed;   /* syscall, args, sp and pc are known: only if it does not run. Both are 0 of a thread that stays in the kernel */
	bool     is_i386;  /* the call is one of i386: `syscall` is the number of x86-64, `args` come from other registers */
	int32_t  syscall;  /* number, or SF_SYSCALL_... */
	uint64_t args[6];
	uint64_t sp, pc;
};

/* Raises this process's limit of open files as far as it may: each task takes two or three. */
void sf_task_raise_limit(void);
/* How many files this process may open. */
uint64_t sf_task_limit(void);
/* Whether the limit that it can be raised to suffices for a few threads. Else err says what is needed. */
bool sf_task_check_limit(struct sf_error *err);

/* False when the thread is gone, or this process has as many files open as it may (errno EMFILE). */
bool sf_task_open(int32_t pid, int32_t tid, struct sf_task *ret);
void sf_task_close(struct sf_task *task);

bool sf_task_run(const struct sf_task *task, struct sf_task_run *ret);   /* false: gone */
bool sf_task_look(const struct sf_task *task, struct sf_task_look *ret); /* false: gone */

/* Whether the thread is there. Opens no file. */
bool sf_task_lives(int32_t pid, int32_t tid);

/* As sf_task_run's, of any thread, without keeping a file open; 0: gone. */
uint64_t sf_task_switches(int32_t pid, int32_t tid);

/* Whether both looks found it in the same system call, called from the same place. */
static inline bool sf_task_same_place(const struct sf_task_look *a, const struct sf_task_look *b)
{
	return a->placed && b->placed && a->syscall == b->syscall && a->sp == b->sp && a->pc == b->pc;
}

/* Whether the thread runs, or is still in the call of the look, with the same arguments. */
bool sf_task_is_as_seen(const struct sf_task *task, const struct sf_task_look *look);

/* The registers that a look gives: pc, sp and the arguments of the call. `look` must be placed. */
void sf_task_registers(const struct sf_task_look *look, struct sf_regs *ret);

#define SF_TASK_SAVED 21 /* words */

/*
 * A look, and all registers, from what the kernel has saved of a thread in user mode: the first words of its struct
 * pt_regs. The caller knows the state, and that the thread does not run. False: it has no registers of 64-bit user
 * mode; or not on this architecture.
 */
bool sf_task_saved(int32_t pid, const uint64_t saved[SF_TASK_SAVED], uint8_t state, struct sf_task_look *look_ret,
		   struct sf_regs *ret);

/* The state letter of /proc/.../stat (R S D T t Z X I), 0 when gone. */
char sf_task_letter(int32_t pid, int32_t tid);

/* The CPU that it last ran on; -1 when unknown. */
int sf_task_cpu(struct sf_task *task);

/*
 * When the kernel last counted the thread's time on a CPU, by the clock of that CPU's run queue; 0: unknown. A thread that
 * leaves a CPU and the thread that comes in its place have exactly the same one, until either runs on.
 *
 * Linux: se.exec_start of /proc/PID/task/TID/sched (kernel: kernel/sched/debug.c, proc_sched_show_task; set by update_curr
 * and update_stats_curr_start in kernel/sched/fair.c), with CONFIG_SCHED_DEBUG, or since Linux 6.15.
 */
uint64_t sf_task_turn_ns(struct sf_task *task);
/* Whether this kernel shows it, by a try with this process. */
bool sf_task_shows_turns(void);

bool sf_task_name(int32_t pid, int32_t tid, char ret[SF_TASK_NAME]);

/*
 * The thread's id in the innermost pid namespace that it is in; `tid` when the kernel does not
 * show it.
 */
int32_t sf_task_inner_id(int32_t pid, int32_t tid);

/* Whether the freezer of its control group has stopped it, as `docker pause` does: then it waits in no call and no page fault. */
bool sf_task_is_frozen(int32_t pid, int32_t tid);

/*
 * Whether the kernel has made the thread for its process, and it never leaves the kernel: a worker of io_uring or of vhost. A stop would
 * end what such a worker does, which then fails with EINTR (kernel: io_uring/rw.c). It is so from the thread's first moment on.
 */
bool sf_task_stays_in_kernel(int32_t pid, int32_t tid);

/* The process that traces this thread, 0 if none. */
int32_t sf_task_tracer(int32_t pid, int32_t tid);

#endif
