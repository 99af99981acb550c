/* SPDX-License-Identifier: Apache-2.0 */
/*
 * syscall(2), in front of libc's, which loads the number of the call from where nobody finds it
 * again: an EINTR of ours could not be mended (frozen/signal/context.h). This one leaves it on the stack,
 * right where the context stands after the call. Signal-safe.
 */
#include <stdarg.h>

#include "agent/interpose/interpose.h"
#include "frozen/signal/handler.h"

#if defined(__x86_64__)
long sf_marked_syscall(long number, long a, long b, long c, long d, long e, long f);
extern const char sf_marked_syscall_end[] __attribute__((visibility("hidden")));

__asm__(".pushsection .text\n"
	".p2align 4\n"
	".hidden sf_marked_syscall\n"
	".globl sf_marked_syscall\n"
	".type sf_marked_syscall, @function\n"
	"sf_marked_syscall:\n"
	".cfi_startproc\n"
	"push %rdi\n"
	".cfi_adjust_cfa_offset 8\n"
	"mov %rdi, %rax\n"
	"mov %rsi, %rdi\n"
	"mov %rdx, %rsi\n"
	"mov %rcx, %rdx\n"
	"mov %r8, %r10\n"
	"mov %r9, %r8\n"
	"mov 16(%rsp), %r9\n"
	"syscall\n"
	".hidden sf_marked_syscall_end\n"
	".globl sf_marked_syscall_end\n"
	"sf_marked_syscall_end:\n"
	"add $8, %rsp\n"
	".cfi_adjust_cfa_offset -8\n"
	"ret\n"
	".cfi_endproc\n"
	".size sf_marked_syscall, .-sf_marked_syscall\n"
	".popsection\n");

void sf_interpose_syscall_init(void)
{
	sf_handler.config.marked_syscall = (uint64_t)(uintptr_t)sf_marked_syscall_end;
}

/* All six, also of a call that has fewer: as libc's does. */
SF_INTERPOSED long syscall(long number, ...)
{
	struct sf_filter_call call = { .number = number };
	const long *args = call.args;
	va_list list;

	va_start(list, number);
	for (int i = 0; i < 6; i++)
		call.args[i] = va_arg(list, long);
	va_end(list);
	sf_interpose_before(&call);
	return sf_interpose_result(sf_marked_syscall(number, args[0], args[1], args[2], args[3],
						     args[4], args[5]));
}
#else
void sf_interpose_syscall_init(void)
{
}
#endif
