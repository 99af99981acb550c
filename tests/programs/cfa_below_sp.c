/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A function that keeps its caller's stack pointer below its own, in the red zone, and says so in its unwind rules, as OpenSSL's
 * SHA-512 by AVX2 does in its loops. A tenth of the time is spent in a function whose frame is all above the stack pointer.
 */
#include "program.h"

void below_sp(long turns);
void in_leaf(long turns);

__asm__(".text\n"
	".globl in_leaf\n"
	".type in_leaf, @function\n"
	"in_leaf:\n"
	"	.cfi_startproc\n"
	"1:	dec %rdi\n"
	"	jnz 1b\n"
	"	ret\n"
	"	.cfi_endproc\n"
	".size in_leaf, . - in_leaf\n"
	".globl below_sp\n"
	".type below_sp, @function\n"
	"below_sp:\n"
	"	.cfi_startproc\n"
	"	mov %rsp, %rax\n"
	"	.cfi_def_cfa_register %rax\n"
	"	push %rbx\n"
	"	.cfi_offset %rbx, -16\n"
	"	sub $0x100, %rsp\n"
	"	and $-128, %rsp\n"
	"	mov %rax, -8(%rsp)\n"
	"	.cfi_escape 0x0f, 0x05, 0x77, 0x78, 0x06, 0x23, 0x08\n" /* the CFA is *(rsp - 8) + 8 */
	"1:	dec %rdi\n"
	"	jnz 1b\n"
	"	mov -8(%rsp), %rax\n"
	"	.cfi_def_cfa %rax, 8\n"
	"	mov -8(%rax), %rbx\n"
	"	.cfi_restore %rbx\n"
	"	mov %rax, %rsp\n"
	"	.cfi_def_cfa_register %rsp\n"
	"	ret\n"
	"	.cfi_endproc\n"
	".size below_sp, . - below_sp\n");

int main(void)
{
	bounded(60);
	ready();
	for (;;) {
		below_sp(900000);
		in_leaf(100000);
	}
}
