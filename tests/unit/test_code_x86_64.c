/* SPDX-License-Identifier: Apache-2.0 */
/* Instructions of x86-64: how long they are, as the assembler says; what they do to sp and fp; how functions are left. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "frozen/arch.h"
#include "frozen/code_x86_64.h"
#include "frozen/arch_x86_64.h"
#include "frozen/reader.h"

#ifdef __x86_64__

/* Instructions, one behind the other, and the length of each in a table. */
#define I(text) "771: " text "\n772: .pushsection .rodata.lengths,\"a\"\n.byte 772b - 771b\n.popsection\n"

__asm__(".pushsection .rodata.lengths,\"a\"\n"
	"lengths:\n"
	".popsection\n"
	".pushsection .rodata.code,\"a\"\n"
	"code_start:\n"
	I("push %rbp") I("push %r13") I("push $5") I("push $100000") I("pushq 8(%rax)") I("mov %rsp, %rbp") I("pop %r12")
	I("sub $8, %rsp") I("sub $4096, %rsp") I("lea -16(%rsp), %rsp") I("lea -40(%rbp), %rsp") I("leave") I("ret") I("ret $16")
	I("mov $1, %eax") I("movabs $0x123456789abcdef0, %r10") I("mov $7, %cx") I("movb $1, 5(%rsp)") I("movw $9, (%rdi)")
	I("movl $9, 0x1234(%rip)") I("movabs %rax, 0x47d530") I("imul $0x41c64e6d, %rdi, %rax") I("imul $3, %rdi, %rax")
	I("add $12345, %rax") I("add %al, (%rax)") I("and $-16, %rsp") I("cmp $5, %r9") I("cmpb $0, 8(%rsi,%rdi,4)")
	I("test $1, %al") I("test $0x1000, %eax") I("testl $7, 8(%rbx)") I("notl (%rax)") I("call 1f\n1:") I("call *%rax")
	I("call *8(%r13)") I("jmp *%r11") I("jmp code_start") I("je code_start") I(".byte 0x74, 0x10") I("jmp 2f\n2:")
	I("cqto") I("idiv %rsi") I("nopw 0(%rax,%rax,1)") I("endbr64") I("syscall") I("ud2") I("int3") I("hlt")
	I("movzbl %al, %eax") I("cmove %rax, %rbx") I("sete %al") I("bt $5, %rax") I("shld $3, %rax, %rbx") I("bswap %eax")
	I("cpuid") I("xadd %rax, (%rbx)") I("lock cmpxchg %rcx, (%rdx)") I("rep movsb") I("mov %fs:0x28, %rax")
	I("movaps %xmm0, 16(%rsp)") I("movdqu (%rsi), %xmm15") I("pshufd $1, %xmm0, %xmm1") I("cvtsi2sd %rax, %xmm1")
	I("psrldq $4, %xmm1") I("pcmpistri $0, %xmm1, %xmm2") I("aesenc %xmm1, %xmm2") I("crc32q %rax, %rbx")
	I("vaddpd %ymm1, %ymm2, %ymm3") I("vpermq $3, %ymm1, %ymm2") I("vzeroupper") I("vpshufb (%rax), %ymm9, %ymm10")
	I("vaddpd %zmm1, %zmm2, %zmm3") I("vpternlogd $3, %zmm1, %zmm2, %zmm3") I("vmovdqu64 64(%rax), %zmm1")
	I("andn %rax, %rbx, %rcx") I("rorx $3, %rax, %rbx") I("popcnt %rax, %rbx") I("xchg %rax, %rbx") I("fldl 8(%rsp)")
	I("lea 0x12345678(,%rax,8), %rcx") I("lea (%r12), %rax") I("lea (%r13,%r14), %rax") I("in $3, %al") I("xchg %ax, %ax")
	"code_end:\n"
	".popsection\n"
	".pushsection .rodata.lengths\n"
	"lengths_end:\n"
	".popsection\n");

extern const uint8_t code_start[], code_end[], lengths[], lengths_end[];

static void lengths_are_as_the_assembler_says(void **state)
{
	const uint8_t *at = code_start;
	struct sf_x86_instruction next;
	(void)state;

	for (const uint8_t *length = lengths; length < lengths_end; at += *length++) {
		assert_true(sf_x86_decode(at, (size_t)(code_end - at), &next));
		if (next.size != *length)
			fail_msg("instruction %d: %u bytes, not %u: %02x %02x %02x", (int)(length - lengths), next.size, *length,
				 at[0], at[1], at[2]);
	}
	assert_ptr_equal(at, code_end);
}

/* Not one byte behind those that are at hand is read: the last instruction is cut everywhere. */
static void what_is_cut_is_not_known(void **state)
{
	const uint8_t *at = code_start;
	struct sf_x86_instruction next;
	uint8_t few[SF_X86_MAX_SIZE];
	(void)state;

	for (const uint8_t *length = lengths; length < lengths_end; at += *length++) {
		for (size_t n = 0; n < *length; n++) {
			memset(few, 0xff, sizeof(few));
			memcpy(few, at, n);
			assert_true(!sf_x86_decode(few, n, &next) || next.size <= n);
		}
	}
}

struct effect {
	uint8_t code[10];
	enum sf_x86_effect effect;
	int32_t value;
};

static void effects_on_sp_and_fp(void **state)
{
	static const struct effect effects[] = {
		{ { 0x53 }, SF_X86_PUSH, 8 },                           /* push %rbx */
		{ { 0x41, 0x55 }, SF_X86_PUSH, 8 },                     /* push %r13, not rbp */
		{ { 0x55 }, SF_X86_PUSH_FP, 8 },
		{ { 0x5d }, SF_X86_POP_FP, -8 },
		{ { 0x5c }, SF_X86_LOAD_SP, 0 },                        /* pop %rsp */
		{ { 0x48, 0x8b, 0x64, 0x24, 0x60 }, SF_X86_LOAD_SP, 96 }, /* mov 96(%rsp), %rsp */
		{ { 0x6a, 0x05 }, SF_X86_PUSH, 8 },
		{ { 0x48, 0x83, 0xec, 0x18 }, SF_X86_PUSH, 24 },
		{ { 0x48, 0x81, 0xc4, 0x00, 0x01, 0, 0 }, SF_X86_PUSH, -256 },
		{ { 0x48, 0x83, 0xe4, 0xf0 }, SF_X86_OTHER_SP, 0 },     /* and $-16, %rsp */
		{ { 0x48, 0x83, 0xfc, 0x08 }, SF_X86_PLAIN, 0 },        /* cmp $8, %rsp */
		{ { 0x49, 0x83, 0xec, 0x18 }, SF_X86_PLAIN, 0 },        /* sub $24, %r12 */
		{ { 0x48, 0x8d, 0x64, 0x24, 0xe0 }, SF_X86_PUSH, 32 },  /* lea -32(%rsp), %rsp */
		{ { 0x48, 0x8d, 0x65, 0xd8 }, SF_X86_TO_FP, -40 },
		{ { 0x48, 0x89, 0xec }, SF_X86_TO_FP, 0 },              /* mov %rbp, %rsp */
		{ { 0x48, 0x89, 0xe5 }, SF_X86_SET_FP, 0 },
		{ { 0x48, 0x8b, 0xec }, SF_X86_SET_FP, 0 },
		{ { 0x48, 0x8b, 0x6c, 0x24, 0x20 }, SF_X86_LOAD_FP, 32 },
		{ { 0x48, 0x8b, 0x6d, 0x00 }, SF_X86_RESTORE_FP, 0 },   /* mov (%rbp), %rbp */
		{ { 0x48, 0x8b, 0x6d, 0x08 }, SF_X86_PLAIN, 0 },
		{ { 0x48, 0x89, 0x6d, 0x00 }, SF_X86_PLAIN, 0 },        /* mov %rbp, (%rbp) */
		{ { 0x8b, 0x6d, 0x00 }, SF_X86_PLAIN, 0 },              /* mov (%rbp), %ebp */
		{ { 0x49, 0x8b, 0x6d, 0x00 }, SF_X86_PLAIN, 0 },        /* mov (%r13), %rbp */
		{ { 0x48, 0x89, 0xc4 }, SF_X86_OTHER_SP, 0 },           /* mov %rax, %rsp */
		{ { 0x48, 0x29, 0xc4 }, SF_X86_OTHER_SP, 0 },           /* sub %rax, %rsp */
		{ { 0x48, 0x0f, 0x44, 0xe0 }, SF_X86_OTHER_SP, 0 },     /* cmove %rax, %rsp */
		{ { 0x66, 0x0f, 0x38, 0x1e, 0xe4 }, SF_X86_PLAIN, 0 },  /* pabsd %xmm4, %xmm4: 4 is no sp */
		{ { 0x66, 0x0f, 0x3a, 0x0f, 0xe1, 0x08 }, SF_X86_PLAIN, 0 },       /* palignr $8, %xmm1, %xmm4 */
		{ { 0xc4, 0xe3, 0xfd, 0x00, 0xcc, 0xd8 }, SF_X86_PLAIN, 0 },       /* vpermq $0xd8, %ymm4, %ymm1 */
		{ { 0xc4, 0xe2, 0x5d, 0x00, 0xe4 }, SF_X86_PLAIN, 0 },  /* vpshufb %ymm4, %ymm4, %ymm4 */
		{ { 0xc5, 0xf4, 0x41, 0xe2 }, SF_X86_PLAIN, 0 },        /* kandw %k2, %k1, %k4 */
		{ { 0xc9 }, SF_X86_LEAVE, 0 },
		{ { 0xc3 }, SF_X86_RETURN, 0 },
		{ { 0xe8, 1, 2, 3, 4 }, SF_X86_CALL, 0 },
		{ { 0xff, 0xd0 }, SF_X86_CALL, 8 },
		{ { 0xff, 0x75, 0x08 }, SF_X86_PUSH, 8 },               /* pushq 8(%rbp) */
		{ { 0xff, 0xe0 }, SF_X86_JUMP, 8 },
		{ { 0xeb, 0x05 }, SF_X86_JUMP, 0 },
		{ { 0x0f, 0x0b }, SF_X86_JUMP, 0 },                     /* ud2 */
		{ { 0x74, 0x05 }, SF_X86_BRANCH, 0 },
		{ { 0x0f, 0x85, 1, 0, 0, 0 }, SF_X86_BRANCH, 0 },
		{ { 0xe3, 0x05 }, SF_X86_BRANCH, 0 },                   /* jrcxz */
		{ { 0xff, 0x74, 0x24, 0x18 }, SF_X86_PUSH_COPY, 24 },   /* push 24(%rsp) */
		{ { 0x48, 0x89, 0x2c, 0x24 }, SF_X86_STORE_FP, 0 },     /* mov %rbp, (%rsp) */
		{ { 0x48, 0x89, 0x6c, 0x24, 0x08 }, SF_X86_PLAIN, 0 },  /* mov %rbp, 8(%rsp) */
		{ { 0x8f, 0x45, 0x08 }, SF_X86_POP_RETURN, -8 },        /* pop 8(%rbp) */
		{ { 0x8f, 0x45, 0x10 }, SF_X86_PUSH, -8 },              /* pop 16(%rbp) */
	};
	struct sf_x86_instruction next;
	(void)state;

	for (unsigned i = 0; i < sizeof(effects) / sizeof(effects[0]); i++) {
		assert_true(sf_x86_decode(effects[i].code, sizeof(effects[i].code), &next));
		if (next.effect != effects[i].effect || next.value != effects[i].value)
			fail_msg("effect %u: %d (%d)", i, (int)next.effect, next.value);
	}
}

/* Where calls, jumps and branches go. */
static void targets(void **state)
{
	static const struct {
		uint8_t code[SF_X86_MAX_SIZE];
		bool has_target, is_slot;
		int32_t distance;
	} targets[] = {
		{ { 0xeb, 0xfe }, true, false, -2 },
		{ { 0x75, 0x10 }, true, false, 16 },
		{ { 0xe9, 0x00, 0xff, 0xff, 0xff }, true, false, -256 },
		{ { 0xe8, 0x00, 0x01, 0, 0 }, true, false, 256 },
		{ { 0x0f, 0x84, 0x00, 0x01, 0, 0 }, true, false, 256 },
		{ { 0xff, 0x25, 0x10, 0, 0, 0 }, false, true, 16 },     /* jmp *16(%rip) */
		{ { 0xff, 0x15, 0x10, 0, 0, 0 }, false, false, 0 },     /* call *16(%rip) */
		{ { 0xff, 0xe1 }, false, false, 0 },
		{ { 0xff, 0x24, 0x25, 0x10, 0, 0, 0 }, false, false, 0 },
	};
	struct sf_x86_instruction next;
	(void)state;

	for (unsigned i = 0; i < sizeof(targets) / sizeof(targets[0]); i++) {
		assert_true(sf_x86_decode(targets[i].code, sizeof(targets[i].code), &next));
		if (next.has_target != targets[i].has_target || next.is_slot != targets[i].is_slot ||
		    next.distance != targets[i].distance)
			fail_msg("target %u: %d", i, next.distance);
	}
}

#define AT UINT64_C(0x10000)

static bool find_exit(const uint8_t *code, size_t size, struct sf_exit *ret)
{
	const struct sf_reader reader = { .window = code, .window_start = AT, .window_size = size };

	return sf_x86_find_exit(&reader, AT, ret);
}

#define FIND(ret, ...) find_exit((const uint8_t[]){ __VA_ARGS__ }, sizeof((const uint8_t[]){ __VA_ARGS__ }), ret)

static void a_function_is_left_by_its_epilogue(void **state)
{
	struct sf_exit exit;
	(void)state;

	assert_true(FIND(&exit, 0x90, 0xc3));
	assert_true(!exit.is_by_fp && exit.size == 0 && exit.saved_fp == -1);
	/* add $24, %rsp; pop %rbx; pop %rbp; ret */
	assert_true(FIND(&exit, 0x48, 0x83, 0xc4, 0x18, 0x5b, 0x5d, 0xc3));
	assert_true(!exit.is_by_fp && exit.size == 40 && exit.saved_fp == 32);
	/* mov 32(%rsp), %rbp; add $40, %rsp; ret, as Go's */
	assert_true(FIND(&exit, 0x48, 0x8b, 0x6c, 0x24, 0x20, 0x48, 0x83, 0xc4, 0x28, 0xc3));
	assert_true(!exit.is_by_fp && exit.size == 40 && exit.saved_fp == 32);
	/* sub %rax, %rsp; call; leave; ret */
	assert_true(FIND(&exit, 0x48, 0x29, 0xc4, 0xe8, 0, 0, 0, 0, 0xc9, 0xc3));
	assert_true(exit.is_by_fp && !exit.is_ahead);
	/* mov %rbp, %rsp; pop %rsp; pop %rbp; ret, as libjpeg-turbo's; and without pop %rsp */
	assert_true(FIND(&exit, 0x90, 0x48, 0x89, 0xec, 0x5c, 0x5d, 0xc3) && exit.is_by_fp && exit.is_ahead);
	assert_true(FIND(&exit, 0x90, 0x48, 0x89, 0xec, 0x5d, 0xc3) && exit.is_by_fp && !exit.is_ahead);
	/* mov (%rbp), %rbp; add $16, %rsp; jmp *%rcx, as V8's; and behind its first instruction */
	assert_true(FIND(&exit, 0x48, 0x8b, 0x6d, 0, 0x48, 0x83, 0xc4, 0x10, 0xff, 0xe1) && exit.is_by_fp && !exit.is_guess);
	assert_true(FIND(&exit, 0x48, 0x83, 0xc4, 0x10, 0xff, 0xe1) && !exit.is_by_fp && exit.size == 16);
	/* It pushes and pops behind pc, for a call: fp is still in its register. */
	assert_true(FIND(&exit, 0x55, 0x5d, 0x58, 0xc3));
	assert_true(!exit.is_by_fp && exit.size == 8 && exit.saved_fp == -1);
}

/* Checks before the frame is made, as V8 has them: cmp; jne; push %rbp; mov %rsp, %rbp. And between the last two. */
static void a_function_that_has_just_begun(void **state)
{
	struct sf_exit exit;
	(void)state;

	assert_true(FIND(&exit, 0x48, 0x3b, 0xd9, 0x75, 0x20, 0x55, 0x48, 0x89, 0xe5));
	assert_true(!exit.is_by_fp && exit.size == 0 && exit.saved_fp == -1);
	assert_true(FIND(&exit, 0x90, 0x48, 0x89, 0xe5));
	assert_true(!exit.is_by_fp && exit.size == 8 && exit.saved_fp == 0);
}

/* Assembled at AT; what is looked for is at `at` bytes from there. */
static bool find_exit_at(const uint8_t *code, size_t size, size_t at, struct sf_exit *ret)
{
	const struct sf_reader reader = { .window = code, .window_start = AT, .window_size = size };

	return sf_x86_find_exit(&reader, AT + at, ret);
}

/* The instructions are followed where they lead, not one after another as they lie there. */
static void jumps_are_followed(void **state)
{
	/* jne over; add $8, %rsp; ret; over: ud2 */
	static const uint8_t first_way[] = { 0x75, 0x05, 0x48, 0x83, 0xc4, 0x08, 0xc3, 0x0f, 0x0b };
	/* jne over; ud2; over: pop %rbx; ret */
	static const uint8_t second_way[] = { 0x75, 0x02, 0x0f, 0x0b, 0x5b, 0xc3 };
	/* jmp over; pop %rbx; ret; over: ret */
	static const uint8_t over[] = { 0xeb, 0x02, 0x5b, 0xc3, 0xc3 };
	/* pop %rbx; jmp other; ud2; other: push %rbp; mov %rsp, %rbp */
	static const uint8_t other[] = { 0x5b, 0xeb, 0x02, 0x0f, 0x0b, 0x55, 0x48, 0x89, 0xe5 };
	/* push %rcx; push 8(%rsp), which is the return address; jmp other */
	static const uint8_t copy[] = { 0x51, 0xff, 0x74, 0x24, 0x08, 0xeb, 0x00, 0x55, 0x48, 0x89, 0xe5 };
	/* jmp *0(%rip), to the ret behind the word */
	static const uint8_t slot[] = { 0xff, 0x25, 0, 0, 0, 0, 0x0e, 0, 1, 0, 0, 0, 0, 0, 0xc3 };
	struct sf_exit exit;
	(void)state;

	assert_true(find_exit(first_way, sizeof(first_way), &exit) && !exit.is_guess && exit.size == 8);
	assert_true(find_exit(second_way, sizeof(second_way), &exit) && exit.size == 8);
	assert_true(find_exit(over, sizeof(over), &exit) && exit.size == 0);
	assert_true(find_exit(other, sizeof(other), &exit) && exit.size == 8);
	assert_true(find_exit(copy, sizeof(copy), &exit) && exit.size == 0);
	assert_true(find_exit_at(copy, sizeof(copy), 1, &exit) && exit.size == 8);
	assert_true(find_exit_at(copy, sizeof(copy), 5, &exit) && exit.size == 0);
	assert_true(find_exit(slot, sizeof(slot), &exit) && !exit.is_guess && exit.size == 0);
	/* pop %rbx; jmp *%rcx: to a function, or within this one? */
	assert_true(FIND(&exit, 0x5b, 0xff, 0xe1) && exit.is_guess && exit.size == 8);
}

/*
 * SBCL. The caller makes half of a record: sub $16, %rsp; mov %rbp, (%rsp); mov %rsp, %rbp; mov $4, %ecx; call. The function
 * puts its return address behind: pop 8(%rbp).
 */
static void records_that_a_caller_begins(void **state)
{
	static const uint8_t code[80] = {
		[36] = 0x48, 0x83, 0xec, 0x10, 0x48, 0x89, 0x2c, 0x24, 0x48, 0x8b, 0xec, 0xb9, 4, 0, 0, 0,
		0xe8, 0, 0, 0, 0, 0x8f, 0x45, 0x08, 0x48, 0x8b, 0xe5, 0xf8, 0x5d, 0xc3,
	};
	static const struct {
		size_t at;
		bool is_ahead, is_half;
	} places[] = { { 36, false, false }, { 40, false, false }, { 44, false, false }, { 47, true, false }, { 52, true, false },
		       { 57, false, true }, { 60, false, false } };
	struct sf_exit exit;
	(void)state;

	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		if (!find_exit_at(code, sizeof(code), places[i].at, &exit) || exit.is_ahead != places[i].is_ahead ||
		    exit.is_half != places[i].is_half || exit.is_by_fp != !places[i].is_half)
			fail_msg("at %zu: %d %d %d", places[i].at, exit.is_by_fp, exit.is_ahead, exit.is_half);
	}
	/* A local call: the record was made in another way. */
	assert_true(FIND(&exit, 0xe8, 1, 0, 0, 0, 0x90, 0x8f, 0x45, 0x08));
	assert_true(exit.is_by_fp && exit.is_ahead);
}

/* SBCL's calls through a pointer: in place of a return, and with arguments on the stack. */
static void calls_with_records(void **state)
{
	static const uint8_t in_place[80] = { [40] = 0xff, 0x75, 0x08, 0xff, 0x60, 0xfd };
	static const uint8_t with_arguments[80] = { [40] = 0x49, 0x89, 0x29, 0x49, 0x8b, 0xe9, 0xff, 0x50, 0xfd };
	struct sf_exit exit;
	(void)state;

	assert_true(find_exit_at(in_place, sizeof(in_place), 43, &exit) && exit.is_by_fp && !exit.is_ahead && !exit.behind);
	assert_true(find_exit_at(with_arguments, sizeof(with_arguments), 46, &exit) && exit.is_by_fp && exit.is_ahead);
	assert_false(find_exit_at(with_arguments, sizeof(with_arguments), 43, &exit) && exit.is_ahead);
}

static bool find_kept(const uint8_t *code, size_t size, unsigned *reg_ret, uint64_t *behind_ret)
{
	const struct sf_reader reader = { .window = code, .window_start = AT, .window_size = size };

	return sf_x86_find_kept_sp(&reader, AT, reg_ret, behind_ret);
}

#define KEPT(...) find_kept((const uint8_t[]){ __VA_ARGS__ }, sizeof((const uint8_t[]){ __VA_ARGS__ }), &reg, &behind)

/* As x264's and OpenBLAS' functions, which align their stack. */
static void a_register_that_keeps_sp(void **state)
{
	uint8_t longer[8192];
	unsigned reg;
	uint64_t behind;
	(void)state;

	assert_true(KEPT(0x75, 0x03, 0xeb, 0x01, 0x90, 0x48, 0x89, 0xcc, 0xc3));  /* jne; jmp; nop; mov %rcx, %rsp; ret */
	assert_true(reg == 2 && behind == AT + 8);
	assert_true(KEPT(0x4c, 0x89, 0xd4, 0xc3) && reg == 10 && behind == AT + 3); /* mov %r10, %rsp */
	assert_true(KEPT(0xe8, 0, 0, 0, 0, 0x48, 0x89, 0xdc, 0xc3) && reg == 3);   /* call; mov %rbx, %rsp */
	assert_true(KEPT(0x49, 0x8d, 0x22, 0xc3) && reg == 10 && behind == AT + 3); /* lea (%r10), %rsp */
	assert_false(KEPT(0x4d, 0x8d, 0x22, 0xc3));                                /* lea (%r10), %r12 */
	assert_false(KEPT(0xc3, 0x48, 0x89, 0xdc, 0xc3));                          /* behind a return is another function */
	assert_false(KEPT(0xff, 0xe0, 0x48, 0x89, 0xdc, 0xc3));                    /* ... and behind jmp *%rax */
	assert_false(KEPT(0x48, 0x89, 0xe3, 0x48, 0x89, 0xdc, 0xc3));              /* mov %rsp, %rbx: it is not kept yet */
	assert_false(KEPT(0x48, 0x89, 0xec, 0xc3));                                /* mov %rbp, %rsp: a frame pointer */
	assert_false(KEPT(0x89, 0xdc, 0xc3));                                      /* mov %ebx, %esp */
	assert_false(KEPT(0x90));
	memset(longer, 0x90, sizeof(longer));
	memcpy(longer + 6000, (const uint8_t[]){ 0x48, 0x89, 0xdc, 0xc3 }, 4);
	assert_true(find_kept(longer, sizeof(longer), &reg, &behind) && reg == 3 && behind == AT + 6003);
	memset(longer + 6000, 0x90, 4);
	memcpy(longer + 7000, (const uint8_t[]){ 0x48, 0x89, 0xdc, 0xc3 }, 4);
	assert_false(find_kept(longer, sizeof(longer), &reg, &behind));
}

static void what_its_code_does_not_show(void **state)
{
	uint8_t endless[8192];
	struct sf_exit exit;
	(void)state;

	assert_false(FIND(&exit, 0x48, 0x29, 0xc4, 0xc3));                        /* sub %rax, %rsp; ret */
	assert_false(FIND(&exit, 0xff, 0x33, 0xc3));                              /* push (%rbx); ret: none of this function */
	assert_false(FIND(&exit, 0xe8, 0, 0, 0, 0, 0x55, 0x48, 0x89, 0xe5));      /* call, and perhaps the next function */
	assert_false(FIND(&exit, 0x0f, 0x0b, 0xc3));                              /* ud2, and other code */
	assert_false(FIND(&exit, 0xeb, 0xfe, 0xc3));                              /* for ever */
	assert_false(FIND(&exit, 0x06, 0xc3));                                    /* no instruction */
	assert_false(FIND(&exit, 0x90));
	memset(endless, 0x90, sizeof(endless));
	assert_false(find_exit(endless, sizeof(endless), &exit));
}

#else

static void lengths_are_as_the_assembler_says(void **state)
{
	(void)state;
	skip();
}
#define what_is_cut_is_not_known lengths_are_as_the_assembler_says
#define effects_on_sp_and_fp lengths_are_as_the_assembler_says
#define a_function_is_left_by_its_epilogue lengths_are_as_the_assembler_says
#define targets lengths_are_as_the_assembler_says
#define jumps_are_followed lengths_are_as_the_assembler_says
#define records_that_a_caller_begins lengths_are_as_the_assembler_says
#define a_function_that_has_just_begun lengths_are_as_the_assembler_says
#define calls_with_records lengths_are_as_the_assembler_says
#define a_register_that_keeps_sp lengths_are_as_the_assembler_says
#define what_its_code_does_not_show lengths_are_as_the_assembler_says

#endif

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lengths_are_as_the_assembler_says),
		cmocka_unit_test(what_is_cut_is_not_known),
		cmocka_unit_test(effects_on_sp_and_fp),
		cmocka_unit_test(targets),
		cmocka_unit_test(jumps_are_followed),
		cmocka_unit_test(records_that_a_caller_begins),
		cmocka_unit_test(a_function_is_left_by_its_epilogue),
		cmocka_unit_test(a_function_that_has_just_begun),
		cmocka_unit_test(calls_with_records),
		cmocka_unit_test(a_register_that_keeps_sp),
		cmocka_unit_test(what_its_code_does_not_show),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
