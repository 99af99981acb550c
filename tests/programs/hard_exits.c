/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Functions without unwind rules whose ends are hard to find, until a signal ends the program after SECONDS. block calls
 * pushed, which calls stored, which calls far, which calls leaf.
 *
 * pushed and stored align their stack, and keep the old sp there. far returns some thousand instructions behind its call. block
 * ends by a jump to an unknown place, as the code does that emulators make, and the way out lies behind that jump.
 *
 * hard_exits SECONDS
 */
#include "program.h"

__asm__(".text\n"
	".globl block\n"
	".type block, @function\n"
	"block:\n"
	"	push %rbx\n"
	"	sub $48, %rsp\n"
	"1:	call pushed\n"
	"	lea 1b(%rip), %rax\n"
	"	jmp *%rax\n"
	"	add $48, %rsp\n"
	"	pop %rbx\n"
	"	ret\n"
	".size block, . - block\n"
	".type pushed, @function\n"
	"pushed:\n"
	"	mov %rsp, %rax\n"
	"	and $-64, %rsp\n"
	"	lea -8(%rsp), %rsp\n"
	"	push %rax\n"
	"	sub $64, %rsp\n"
	"	call stored\n"
	"	add $64, %rsp\n"
	"	pop %rsp\n"
	"	ret\n"
	".size pushed, . - pushed\n"
	".type stored, @function\n"
	"stored:\n"
	"	push %rbx\n"
	"	push %rbp\n"
	"	mov %rsp, %rbx\n"
	"	and $-64, %rsp\n"
	"	sub $128, %rsp\n"
	"	mov %rbx, 96(%rsp)\n"
	"	xor %ebx, %ebx\n"
	"	xor %ebp, %ebp\n"
	"	call far\n"
	"	mov 96(%rsp), %rsp\n"
	"	pop %rbp\n"
	"	pop %rbx\n"
	"	ret\n"
	".size stored, . - stored\n"
	".type far, @function\n"
	"far:\n"
	"	push %rbx\n"
	"	call leaf\n"
	"	.rept 3000\n"
	"	add $1, %eax\n"
	"	.endr\n"
	"	pop %rbx\n"
	"	ret\n"
	".size far, . - far\n"
	".type leaf, @function\n"
	"leaf:\n"
	"	mov $1000000, %ecx\n"
	"1:	imul $1103515245, %rdi, %rdi\n"
	"	add $12345, %rdi\n"
	"	sub $1, %ecx\n"
	"	jne 1b\n"
	"	ret\n"
	".size leaf, . - leaf\n");

void block(void);

int main(int argc, char **argv)
{
	bounded((unsigned)argument(argc, argv, 1, 120));
	ready();
	block();
	NO_TAIL_CALL();
	return 0;
}
