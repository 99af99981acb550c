/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Functions without unwind rules, as FreePascal and JIT compilers make them: outer calls framed, which calls middle, which
 * calls leaf, until a signal ends it after SECONDS. Only framed keeps a frame pointer, and outer has set that register to 0.
 *
 * no_rules SECONDS
 */
#include "program.h"

__asm__(".text\n"
	".globl outer\n"
	".type outer, @function\n"
	"outer:\n"
	"	push %rbp\n"
	"	push %rbx\n"
	"	sub $24, %rsp\n"
	"	mov $0, %ebp\n"
	"	call framed\n"
	"	add $24, %rsp\n"
	"	pop %rbx\n"
	"	pop %rbp\n"
	"	ret\n"
	".size outer, . - outer\n"
	".type framed, @function\n"
	"framed:\n"
	"	push %rbp\n"
	"	mov %rsp, %rbp\n"
	"	sub $16, %rsp\n"
	"	call middle\n"
	"	leave\n"
	"	ret\n"
	".size framed, . - framed\n"
	".type middle, @function\n"
	"middle:\n"
	"	push %rbx\n"
	"	push %r12\n"
	"	push %r13\n"
	"1:	call leaf\n"
	"	add $1, %r12d\n"
	"	test %rax, %rax\n"
	"	je 1b\n"
	"	pop %r13\n"
	"	pop %r12\n"
	"	pop %rbx\n"
	"	ret\n"
	".size middle, . - middle\n"
	".type leaf, @function\n"
	"leaf:\n"
	"	push %rbx\n"
	"	mov $10000, %ebx\n"
	"1:	imul $1103515245, %rdi, %rdi\n"
	"	add $12345, %rdi\n"
	"	sub $1, %ebx\n"
	"	jne 1b\n"
	"	xor %eax, %eax\n"
	"	pop %rbx\n"
	"	ret\n"
	".size leaf, . - leaf\n");

void outer(void);

int main(int argc, char **argv)
{
	bounded((unsigned)argument(argc, argv, 1, 120));
	ready();
	outer();
	NO_TAIL_CALL();
	return 0;
}
