/* SPDX-License-Identifier: Apache-2.0 */
/*
 * x86-64 instructions, as far as the walker needs them: how long one is, and what it does to the stack pointer and the
 * frame pointer. For code without unwind rules. An instruction that is not known is an end, not a guess.
 */
#ifndef SF_FROZEN_CODE_X86_64_H
#define SF_FROZEN_CODE_X86_64_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SF_X86_MAX_SIZE 15 /* bytes of an instruction */

/*
 * DWARF's number of a register (System V psABI, figure 3.36) by its number in code and in Windows' unwind information, of which
 * the lowest 4 bits count: rax rcx rdx rbx rsp rbp rsi rdi r8-r15.
 */
static inline uint8_t sf_x86_dwarf(unsigned reg)
{
	static const uint8_t numbers[16] = { 0, 2, 1, 3, 7, 6, 4, 5, 8, 9, 10, 11, 12, 13, 14, 15 };

	return numbers[reg & 15];
}

enum sf_x86_effect {
	SF_X86_PLAIN,      /* leaves sp alone, goes on behind it */
	SF_X86_PUSH,       /* takes `value` bytes from sp: push, sub, lea. Gives back if `value` is negative: pop, add */
	SF_X86_PUSH_COPY,  /* push value(%rsp) */
	SF_X86_PUSH_FP,    /* push %rbp */
	SF_X86_POP_FP,     /* pop %rbp */
	SF_X86_LOAD_FP,    /* mov value(%rsp), %rbp */
	SF_X86_SET_FP,     /* mov %rsp, %rbp */
	SF_X86_STORE_FP,   /* mov %rbp, (%rsp) */
	SF_X86_RESTORE_FP, /* mov (%rbp), %rbp */
	SF_X86_POP_RETURN, /* pop 8(%rbp): SBCL's functions put their return address where the caller has made room for it */
	SF_X86_LOAD_SP,    /* mov value(%rsp), %rsp, and pop %rsp */
	SF_X86_TO_FP,      /* sp becomes rbp + value: mov %rbp, %rsp and lea */
	SF_X86_LEAVE,
	SF_X86_RETURN,
	SF_X86_CALL,
	SF_X86_JUMP,       /* does not go on behind it */
	SF_X86_BRANCH,     /* a conditional jump */
	SF_X86_OTHER_SP,   /* sets sp to something else */
};

struct sf_x86_instruction {
	unsigned size;
	enum sf_x86_effect effect;
	int32_t value;
	bool has_target;   /* of a call, jump or branch: it goes to `distance` from the next instruction, */
	bool is_slot;      /* or (jmp *distance(%rip)) to where the word there points */
	int32_t distance;
};

/* Its parts, in their order. The pointers are into its bytes. */
struct sf_x86_parts {
	const uint8_t *code;
	size_t n, at;            /* bytes at hand; those of the instruction */
	bool is_short;           /* the prefix 66 */
	bool is_vector;          /* VEX or EVEX */
	uint8_t rex;             /* not of a vector instruction */
	unsigned map;            /* 0: one byte, 1: 0f, 2: 0f 38, 3: 0f 3a */
	uint8_t opcode;
	const uint8_t *operand;  /* the ModRM byte; NULL: none */
	const uint8_t *number;   /* at the end ... */
	unsigned number_size;    /* ... of so many bytes */
};

/* False: not known, or longer than `size` bytes. Signal-safe. */
bool sf_x86_take_apart(const uint8_t *code, size_t size, struct sf_x86_parts *ret);

/* The instruction at `code`, of which `size` bytes are at hand. False: not known, or longer. Signal-safe. */
bool sf_x86_decode(const uint8_t *code, size_t size, struct sf_x86_instruction *ret);

#endif
