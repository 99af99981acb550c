/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calls that a signal undoes: the kernel looks for signals while it works, takes back what it has done and fails. Made again, such
 * a call is undone by the next tick: one that takes longer than the time between two never succeeds. So our signal is blocked
 * while they last, and a tick comes behind the call. They are fallocate() in a tmpfs (mm/shmem.c before Linux 6.11), and bpf(2)
 * where it verifies a program or runs it (kernel/bpf/verifier.c, net/bpf/test_run.c). Signal-safe.
 */
#undef _FILE_OFFSET_BITS /* else fallocate is declared as another name of fallocate64 */
#include <errno.h>
#include <fcntl.h>
#include <linux/bpf.h>
#include <sys/syscall.h>

#include "agent/interpose/interpose.h"
#include "agent/interpose/sampling_signal.h"
#include "frozen/raw.h"
#include "frozen/signal/handler.h"

static uint64_t block_ours(void)
{
	const int signal = sf_handler.config.signal;
	uint64_t ours, before = 0;

	if (!sf_agent_signal_is_ours(signal))
		return 0;
	ours = UINT64_C(1) << (signal - 1);
	sf_raw4(SYS_rt_sigprocmask, SIG_BLOCK, &ours, &before, sizeof(ours));
	return ours & ~before;
}

static bool is_undone(const struct sf_filter_call *call)
{
	return call->number == SYS_fallocate ||
	       (call->number == SYS_bpf && (call->args[0] == BPF_PROG_LOAD || call->args[0] == BPF_PROG_TEST_RUN));
}

uint64_t sf_interpose_begin_undone(const struct sf_filter_call *call)
{
	return is_undone(call) ? block_ours() : 0;
}

static int fail(int error)
{
	errno = error;
	return -1;
}

/* A function of libc: what it returns where there is none behind it, its parameters, and its arguments. */
#define INTERPOSE(name, failure, parameters, ...)                                                  \
	SF_INTERPOSED int name parameters                                                          \
	{                                                                                          \
		int (*next) parameters = (int (*) parameters)sf_interpose_find(SF_NEXT_##name);    \
		uint64_t blocked;                                                                  \
		int result;                                                                        \
                                                                                                   \
		if (!next)                                                                         \
			return failure;                                                            \
		blocked = block_ours();                                                            \
		result = next(__VA_ARGS__);                                                        \
		sf_interpose_end_undone(blocked);                                                  \
		return result;                                                                     \
	}

INTERPOSE(fallocate, fail(ENOSYS), (int fd, int mode, off_t from, off_t size), fd, mode, from, size)
INTERPOSE(fallocate64, fail(ENOSYS), (int fd, int mode, off64_t from, off64_t size), fd, mode, from, size)
INTERPOSE(posix_fallocate, ENOSYS, (int fd, off_t from, off_t size), fd, from, size)
INTERPOSE(posix_fallocate64, ENOSYS, (int fd, off64_t from, off64_t size), fd, from, size)
