/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the state of a thread from /proc. Nothing here stops, wakes or signals the thread. */
#include "os/task.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/output.h"
#include "os/linux/i386_calls.h"
#include "os/linux/proc.h"
#include "os/linux/user_regs.h"
#include "os/process.h"

#define MIN_FILES 32 /* of a recording of one thread, with its own file and libraries: 16 */

void sf_task_raise_limit(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) != 0)
		return;
	limit.rlim_cur = limit.rlim_max;
	setrlimit(RLIMIT_NOFILE, &limit);
}

uint64_t sf_task_limit(void)
{
	struct rlimit limit;

	return getrlimit(RLIMIT_NOFILE, &limit) == 0 ? limit.rlim_cur : UINT64_MAX;
}

bool sf_task_check_limit(struct sf_error *err)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_max >= MIN_FILES)
		return true;
	sf_fail(err, SF_E_SYSTEM, "stillframe may open %llu files at once, and needs %d or more",
		(unsigned long long)limit.rlim_max, MIN_FILES);
	return sf_fail_hint(err, "ulimit -n sets that limit; this shell's hard limit is too low.");
}

bool sf_task_open(int32_t pid, int32_t tid, struct sf_task *ret)
{
	int run_fd = sf_proc_open(pid, tid, "schedstat");

	if (run_fd < 0)
		return false;
	*ret = SF_TASK_CLOSED(pid, tid);
	ret->run_fd = run_fd;
	ret->look_fd = sf_proc_open(pid, tid, "syscall");
	if (ret->look_fd >= 0 || errno != EMFILE)
		return true;
	close(run_fd);
	errno = EMFILE;
	return false;
}

void sf_task_close(struct sf_task *task)
{
	if (task->run_fd >= 0)
		close(task->run_fd);
	if (task->look_fd >= 0)
		close(task->look_fd);
	if (task->stat_fd >= 0)
		close(task->stat_fd);
	if (task->turn_fd >= 0)
		close(task->turn_fd);
	*task = SF_TASK_CLOSED(task->pid, task->tid);
}

/* "cpu_ns wait_ns switches" (kernel: fs/proc/base.c, proc_pid_schedstat). */
static void parse_run(char *text, struct sf_task_run *ret)
{
	char *p = text;

	ret->cpu_ns = strtoull(p, &p, 10);
	ret->wait_ns = strtoull(p, &p, 10);
	ret->switches = strtoull(p, &p, 10);
}

bool sf_task_run(const struct sf_task *task, struct sf_task_run *ret)
{
	char text[96];
	ssize_t n = pread(task->run_fd, text, sizeof(text) - 1, 0);

	if (n <= 0)
		return false;
	text[n] = 0;
	parse_run(text, ret);
	return true;
}

bool sf_task_lives(int32_t pid, int32_t tid)
{
	return syscall(SYS_tgkill, pid, tid, 0) == 0 || errno == EPERM;
}

uint64_t sf_task_switches(int32_t pid, int32_t tid)
{
	struct sf_task_run run;
	char text[96];

	if (!sf_proc_read(pid, tid, "schedstat", text, sizeof(text)))
		return 0;
	parse_run(text, &run);
	return run.switches;
}

/*
 * "running", or "nr a0 a1 a2 a3 a4 a5 sp pc", or "-1 sp pc" when it sleeps outside of a system
 * call, in a page fault (kernel: fs/proc/base.c, proc_pid_syscall).
 */
static bool parse_look(char *text, struct sf_task_look *ret)
{
	char *p = text;

	*ret = (struct sf_task_look){ .state = SF_STATE_RUNNING, .syscall = SF_SYSCALL_NONE };
	if (strncmp(text, "running", 7) == 0)
		return true;
	ret->state = SF_STATE_BLOCKED;
	ret->syscall = (int32_t)strtol(p, &p, 10);
	if (p == text)
		return false;
	if (ret->syscall >= 0) {
		for (int i = 0; i < 6; i++)
			ret->args[i] = strtoull(p, &p, 16);
	} else {
		ret->syscall = SF_SYSCALL_FAULT;
	}
	ret->sp = strtoull(p, &p, 16);
	ret->pc = strtoull(p, &p, 16);
	ret->placed = ret->pc != 0;
	return true;
}

/* Without /proc/.../syscall (not in this kernel, or not allowed) only the state is known. */
static bool look_at_letter(const struct sf_task *task, struct sf_task_look *ret)
{
	char letter = sf_task_letter(task->pid, task->tid);

	*ret = (struct sf_task_look){ .syscall = SF_SYSCALL_NONE };
	switch (letter) {
	case 0:
	case 'Z':
	case 'X':
		return false;
	case 'R':
		ret->state = SF_STATE_RUNNING;
		return true;
	case 'T':
	case 't':
		ret->state = SF_STATE_STOPPED;
		return true;
	default:
		ret->state = SF_STATE_BLOCKED;
		return true;
	}
}

/*
 * A thread that was released is in no run queue until its CPU has processed the wake-up (TASK_WAKING,
 * kernel/sched/core.c). Until then the kernel shows the thread as if it slept. This lasts long if the host has taken
 * that CPU away. A thread in a page fault, and a stopped thread, has another state letter.
 */
static bool is_being_woken(const struct sf_task *task, const struct sf_task_look *look)
{
	return look->state == SF_STATE_BLOCKED && look->syscall == SF_SYSCALL_FAULT &&
	       sf_task_letter(task->pid, task->tid) == 'R';
}

/*
 * A call that goes on after an interruption does so as restart_syscall, which says nothing to a reader: the number
 * that the code before pc loads does.
 */
static int32_t loaded_syscall(int32_t pid, uint64_t pc)
{
	const struct sf_arch *arch = sf_arch_host();
	uint8_t code[SF_CALL_CODE];
	int32_t number;

	if (!arch->loaded_syscall ||
	    sf_process_read(pid, code, pc - sizeof(code), sizeof(code)) != sizeof(code))
		return SYS_restart_syscall;
	number = arch->loaded_syscall(code);
	return number >= 0 ? number : SYS_restart_syscall;
}

/*
 * The registers of user mode are 0: of a zombie, which has no stack any more, or of a thread that the kernel has made for the process
 * and that stays in the kernel, as io_uring's workers do (kernel: io_uring/io-wq.c, create_io_thread()).
 */
static bool look_without_registers(const struct sf_task *task, struct sf_task_look *ret)
{
	const struct sf_task_look parsed = *ret;

	if (!look_at_letter(task, ret))
		return false;
	if (ret->state == SF_STATE_RUNNING || parsed.sp)
		return true;
	ret->placed = true;
	ret->syscall = parsed.syscall;
	memcpy(ret->args, parsed.args, sizeof(ret->args));
	return true;
}

bool sf_task_look(const struct sf_task *task, struct sf_task_look *ret)
{
	char text[256];
	ssize_t n;

	if (task->look_fd < 0)
		return look_at_letter(task, ret);
	n = pread(task->look_fd, text, sizeof(text) - 1, 0);
	if (n < 0 && errno != ESRCH)
		return look_at_letter(task, ret);
	if (n <= 0)
		return false;
	text[n] = 0;
	if (!parse_look(text, ret))
		return false;
	if (is_being_woken(task, ret))
		*ret = (struct sf_task_look){ .state = SF_STATE_RUNNING, .syscall = SF_SYSCALL_NONE };
	if (ret->placed && sf_i386_may_be(ret->syscall, ret->args) && sf_i386_is_behind(task->pid, ret->pc)) {
		ret->syscall = sf_i386_call(ret->syscall);
		ret->is_i386 = true;
	}
	if (ret->placed && ret->syscall == SYS_restart_syscall)
		ret->syscall = loaded_syscall(task->pid, ret->pc);
	return ret->state == SF_STATE_RUNNING || ret->placed || look_without_registers(task, ret);
}

bool sf_task_is_as_seen(const struct sf_task *task, const struct sf_task_look *look)
{
	struct sf_task_look now;

	if (!sf_task_look(task, &now))
		return false;
	return now.state == SF_STATE_RUNNING ||
	       (sf_task_same_place(look, &now) && memcmp(look->args, now.args, sizeof(now.args)) == 0);
}

void sf_task_registers(const struct sf_task_look *look, struct sf_regs *ret)
{
	const struct sf_arch *arch = sf_arch_host();

	*ret = (struct sf_regs){ .pc = look->pc };
	sf_reg_set(ret, arch->sp, look->sp);
	for (unsigned i = 0; look->syscall >= 0 && i < 6; i++)
		sf_reg_set(ret, look->is_i386 ? sf_i386_args[i] : arch->syscall_args[i], look->args[i]);
}

bool sf_task_saved(int32_t pid, const uint64_t saved[SF_TASK_SAVED], uint8_t state, struct sf_task_look *look_ret,
		   struct sf_regs *ret)
{
	const struct sf_arch *arch = sf_arch_host();
	int32_t number;

	if (!sf_user_regs_saved(saved, ret, &number))
		return false;
	*look_ret = (struct sf_task_look){
		.state = state,
		.placed = true,
		.is_i386 = number >= 0 && !sf_i386_is_other(ret) && sf_i386_is_behind(pid, ret->pc),
		.syscall = number >= 0 ? number : state == SF_STATE_RUNNABLE ? SF_SYSCALL_NONE : SF_SYSCALL_FAULT,
		.sp = ret->r[arch->sp],
		.pc = ret->pc,
	};
	if (look_ret->is_i386)
		look_ret->syscall = sf_i386_call(number);
	if (look_ret->syscall == SYS_restart_syscall)
		look_ret->syscall = loaded_syscall(pid, ret->pc);
	for (unsigned i = 0; i < 6; i++)
		look_ret->args[i] = ret->r[look_ret->is_i386 ? sf_i386_args[i] : arch->syscall_args[i]];
	return true;
}

char sf_task_letter(int32_t pid, int32_t tid)
{
	return sf_proc_letter(pid, tid);
}

/* Field 39. */
int sf_task_cpu(struct sf_task *task)
{
	char text[SF_PROC_STAT];
	const char *stat;

	if (task->stat_fd < 0)
		task->stat_fd = sf_proc_open(task->pid, task->tid, "stat");
	stat = task->stat_fd < 0 ? NULL : sf_proc_stat_of(task->stat_fd, text);
	return stat ? (int)sf_proc_stat_field(stat, 39) : -1;
}

/* "se.exec_start   :   1234.567890", in milliseconds, in one of the first lines. */
uint64_t sf_task_turn_ns(struct sf_task *task)
{
	unsigned long long ms, ns;
	char text[512];
	const char *line;
	ssize_t n;

	if (task->turn_fd < 0)
		task->turn_fd = sf_proc_open(task->pid, task->tid, "sched");
	n = task->turn_fd < 0 ? -1 : pread(task->turn_fd, text, sizeof(text) - 1, 0);
	if (n <= 0)
		return 0;
	text[n] = 0;
	line = strstr(text, "\nse.exec_start");
	return line && sscanf(line, "\nse.exec_start : %llu.%6llu", &ms, &ns) == 2 ? ms * 1000000 + ns : 0;
}

bool sf_task_shows_turns(void)
{
	struct sf_task task;
	bool shows;

	if (!sf_task_open(getpid(), getpid(), &task))
		return false;
	shows = sf_task_turn_ns(&task);
	sf_task_close(&task);
	return shows;
}

bool sf_task_name(int32_t pid, int32_t tid, char ret[SF_TASK_NAME])
{
	char text[64];

	if (!sf_proc_read(pid, tid, "comm", text, sizeof(text)))
		return false;
	text[strcspn(text, "\n")] = 0;
	snprintf(ret, SF_TASK_NAME, "%.15s", text);
	sf_sanitize(ret);
	return true;
}

/*
 * By the function of the kernel that it waits in (kernel: do_freezer_trap, which may be a part of get_signal, in kernel/signal.c,
 * of cgroup v2; kernel/freezer.c, of v1). Job control stops threads in get_signal, too: their letter is T.
 */
bool sf_task_is_frozen(int32_t pid, int32_t tid)
{
	static const char *const functions[] = { "do_freezer_trap", "get_signal", "__refrigerator" };
	char text[64];
	bool waits = false;
	char letter;

	if (!sf_proc_read(pid, tid, "wchan", text, sizeof(text)))
		return false;
	for (size_t i = 0; i < sizeof(functions) / sizeof(*functions); i++)
		waits |= strcmp(text, functions[i]) == 0;
	letter = waits ? sf_task_letter(pid, tid) : 0;
	return letter == 'S' || letter == 'D';
}

/*
 * PF_IO_WORKER and PF_USER_WORKER of linux/sched.h, in field 9 (proc_pid_stat(5)). In older kernels these bits had other meanings. A worker
 * of io_uring has all signals blocked but two, by field 32 (kernel: kernel/fork.c, copy_process()), and its name later only; one of
 * vhost has its name at once (kernel/vhost_task.c).
 */
bool sf_task_stays_in_kernel(int32_t pid, int32_t tid)
{
	const uint64_t blocked = 0x7fffffff & ~(1u << (SIGKILL - 1)) & ~(1u << (SIGSTOP - 1));
	char text[SF_PROC_STAT], name[SF_TASK_NAME];
	const char *stat = sf_proc_stat(pid, tid, text);
	const uint64_t flags = stat ? sf_proc_stat_field(stat, 9) : 0;

	if (flags & 0x10)
		return sf_proc_stat_field(stat, 32) == blocked;
	return flags & 0x4000 && sf_task_name(pid, tid, name) && strncmp(name, "vhost-", strlen("vhost-")) == 0;
}

int32_t sf_task_tracer(int32_t pid, int32_t tid)
{
	char text[32];

	return sf_proc_status(pid, tid, "TracerPid:", text, sizeof(text)) ? atoi(text) : 0;
}

/* "NSpid:" is followed by the ids in all namespaces, the outermost first. */
int32_t sf_task_inner_id(int32_t pid, int32_t tid)
{
	char text[512];
	const char *last;

	if (!sf_proc_status(pid, tid, "NSpid:", text, sizeof(text)))
		return tid;
	last = strrchr(text, '\t');
	return (int32_t)strtol(last ? last + 1 : text, NULL, 10);
}
