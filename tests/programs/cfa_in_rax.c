/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A function that keeps its canonical frame address (CFA) in %rax, which calls do not keep, and says so in its unwind rules, as
 * OpenSSL's AES-GCM does. It aligns its stack, and calls a function that leaves %rax alone and takes most of the time.
 */
#include "program.h"

void in_rax(long turns);

__asm__(".text\n"
	".type burn, @function\n"
	"burn:\n"
	"	.cfi_startproc\n"
	"1:	dec %rdi\n"
	"	jnz 1b\n"
	"	ret\n"
	"	.cfi_endproc\n"
	".size burn, . - burn\n"
	".globl in_rax\n"
	".type in_rax, @function\n"
	"in_rax:\n"
	"	.cfi_startproc\n"
	"	mov %rsp, %rax\n"
	"	.cfi_def_cfa_register %rax\n"
	"	push %rbx\n"
	"	.cfi_offset %rbx, -16\n"
	"	sub $0x100, %rsp\n"
	"	and $-128, %rsp\n"
	"	call burn\n"
	"	mov -8(%rax), %rbx\n"
	"	.cfi_restore %rbx\n"
	"	mov %rax, %rsp\n"
	"	.cfi_def_cfa_register %rsp\n"
	"	ret\n"
	"	.cfi_endproc\n"
	".size in_rax, . - in_rax\n");

int main(void)
{
	bounded(60);
	ready();
	for (;;)
		in_rax(100000);
}
