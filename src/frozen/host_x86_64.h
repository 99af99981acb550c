/* SPDX-License-Identifier: Apache-2.0 */
/*
 * x86-64 as the host: what has to be written in its instructions (syscall(2), "Architecture calling conventions"). Included by
 * raw.h only.
 */
#ifndef SF_FROZEN_HOST_X86_64_H
#define SF_FROZEN_HOST_X86_64_H

/* Where the kernel returns to from a signal handler: by these bytes debuggers recognise a signal's trampoline. */
#define SF_HOST_SIGRETURN "movq $15, %rax\n" "syscall\n"

/*
 * Before a function that is a signal's handler: it aligns its stack itself. The kernel aligns the stack of a handler. Emulators of
 * processes may not: qemu-user 7.2 calls handlers with a stack that is 8 bytes off (linux-user/i386/signal.c, get_sigframe).
 * There the first vector that is stored on an aligned place ends the program.
 */
#define SF_HOST_HANDLER __attribute__((force_align_arg_pointer))

/*
 * A signal's handler begins with the program's AC flag (kernel: arch/x86/kernel/signal.c, handle_signal), with which the first
 * load from an odd address ends the program. The return from the handler brings the flag back. 128: the compiler may have data
 * there.
 */
static inline void sf_raw_allow_odd_addresses(void)
{
	__asm__ volatile("lea -128(%%rsp), %%rsp\n"
			 "pushfq\n"
			 "andl $~0x40000, (%%rsp)\n"
			 "popfq\n"
			 "lea 128(%%rsp), %%rsp\n"
			 :
			 :
			 : "cc", "memory");
}

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

#endif
