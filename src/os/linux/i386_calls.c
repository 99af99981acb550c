/* SPDX-License-Identifier: Apache-2.0 */
/* Recognises calls of i386 by the code, and finds their numbers by their names, in libseccomp's tables. */
#include "os/linux/i386_calls.h"

#include <seccomp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>

#include "frozen/still.h"
#include "os/process.h"
#include "os/syscalls.h"

#ifdef __x86_64__

#define MAX_FILES (1u << 20) /* that a process may open, unless the system was told otherwise (fs.nr_open) */
#define MAX_ID_TYPE 3        /* P_PIDFD of waitid(2) */
#define PC_REGISTER 2        /* rcx: `syscall` puts the pc there (but not where the processor has FRED) */

const uint8_t sf_i386_args[6] = { 3, 2, 1, 4, 5, 6 }; /* ebx, ecx, edx, esi, edi, ebp */

/* read and restart_syscall have the same number, poll and waitpid, waitid and io_getevents. */
bool sf_i386_may_be(int32_t number, const uint64_t args[6])
{
	switch (number) {
	case SYS_read:
		return args[0] >= MAX_FILES;
	case SYS_poll:
		return !args[1] || args[1] >= MAX_FILES;
	case SYS_waitid:
		return args[0] > MAX_ID_TYPE;
	default:
		return number >= 0 && !sf_syscall_usually_sleeps(number);
	}
}

bool sf_i386_is_other(const struct sf_regs *regs)
{
	return regs->r[PC_REGISTER] == regs->pc;
}

bool sf_i386_is_behind(int32_t pid, uint64_t pc)
{
	uint8_t code[2];

	return sf_process_read(pid, code, pc - sizeof(code), sizeof(code)) == sizeof(code) && code[0] == 0xcd && code[1] == 0x80;
}

/*
 * In the kernel, waitpid is a wait4 without the last argument. For the other calls that only i386 has, libseccomp has numbers
 * below 0.
 */
int32_t sf_i386_call(int32_t number)
{
	char *name = seccomp_syscall_resolve_num_arch(SCMP_ARCH_X86, number);
	const int32_t here = !name ? SF_SYSCALL_NONE : strcmp(name, "waitpid") == 0 ? SYS_wait4 : sf_syscall_number(name);

	free(name);
	return here >= 0 ? here : SF_SYSCALL_UNTOLD;
}

#else

const uint8_t sf_i386_args[6];

bool sf_i386_may_be(int32_t number, const uint64_t args[6])
{
	(void)number;
	(void)args;
	return false;
}

bool sf_i386_is_other(const struct sf_regs *regs)
{
	(void)regs;
	return true;
}

bool sf_i386_is_behind(int32_t pid, uint64_t pc)
{
	(void)pid;
	(void)pc;
	return false;
}

int32_t sf_i386_call(int32_t number)
{
	return number;
}

#endif
