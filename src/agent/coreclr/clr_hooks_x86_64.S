/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The hooks on x86-64 (clr_hooks.h). The runtime's compiler calls the enter hook with the FunctionID in r14, and the others with it in
 * rdi (CoreCLR: vm/amd64/asmhelpers.S, ProfileEnterNaked and ProfileLeaveNaked). Arguments, and values to return, are in registers
 * at these places, so each general register is saved. What is called uses no others (shadow_writer.h). The stack is aligned as for any call.
 */
	.text

	.macro KEEP register
	pushq	%\register
	.cfi_adjust_cfa_offset 8
	.endm

	.macro TAKE register
	popq	%\register
	.cfi_adjust_cfa_offset -8
	.endm

	.macro HOOK name, called, function
	.globl	\name
	.hidden	\name
	.type	\name, @function
	.balign	16
\name:
	.cfi_startproc
	cmpb	$0, sf_clr_hooks_on(%rip)
	jne	1f
	ret
1:
	KEEP	rax
	KEEP	rcx
	KEEP	rdx
	KEEP	rsi
	KEEP	rdi
	KEEP	r8
	KEEP	r9
	KEEP	r10
	KEEP	r11
	movq	%\function, %rdi
	leaq	72(%rsp), %rsi
	movq	%fs:0, %rdx
	call	\called
	TAKE	r11
	TAKE	r10
	TAKE	r9
	TAKE	r8
	TAKE	rdi
	TAKE	rsi
	TAKE	rdx
	TAKE	rcx
	TAKE	rax
	ret
	.cfi_endproc
	.size	\name, . - \name
	.endm

	.hidden	sf_clr_hooks_on
	.hidden	sf_clr_hooked_enter
	.hidden	sf_clr_hooked_leave

	HOOK	sf_clr_enter_hook, sf_clr_hooked_enter, r14
	HOOK	sf_clr_leave_hook, sf_clr_hooked_leave, rdi

	.section .note.GNU-stack, "", @progbits
