/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Architectures: signal frames at the offsets that the kernel uses (on the host compared with
 * the C library's ucontext_t), call instructions, the edges of functions, and the words of the lists.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <elf.h>
#include <string.h>
#include <ucontext.h>
#include <cmocka.h>

#include "recorded.h"

#define CODE 0x400000
#define STACK 0x7000

static struct recorded r;

static void start(const struct sf_arch *arch)
{
	recorded_init(&r, arch);
	recorded_memory(&r, CODE, 64);
	recorded_memory(&r, STACK, 4096);
}

static void found_by_machine(void **state)
{
	(void)state;
	assert_ptr_equal(sf_arch_by_machine(EM_X86_64), &sf_arch_x86_64);
	assert_ptr_equal(sf_arch_by_machine(EM_AARCH64), &sf_arch_aarch64);
	assert_null(sf_arch_by_machine(EM_386));
#if defined(__x86_64__)
	assert_ptr_equal(sf_arch_host(), &sf_arch_x86_64);
#elif defined(__aarch64__)
	assert_ptr_equal(sf_arch_host(), &sf_arch_aarch64);
#endif
}

static void saved_registers_fit(void **state)
{
	const struct sf_arch *archs[] = { &sf_arch_x86_64, &sf_arch_aarch64 };
	(void)state;

	for (unsigned a = 0; a < 2; a++) {
		bool has_fp = false;

		assert_true(archs[a]->n_regs <= SF_MAX_REGS);
		assert_true(archs[a]->n_saved <= SF_MAX_SAVED);
		for (unsigned i = 0; i < archs[a]->n_saved; i++) {
			assert_true(archs[a]->saved[i] < archs[a]->n_regs);
			assert_int_not_equal(archs[a]->saved[i], archs[a]->sp);
			has_fp |= archs[a]->saved[i] == archs[a]->fp;
		}
		assert_true(has_fp);
	}
}

#if defined(__x86_64__)
/* DWARF number i is at gregs[dwarf_gregs[i]] in the C library's own idea of the frame. */
static const uint8_t dwarf_gregs[] = {
	REG_RAX, REG_RDX, REG_RCX, REG_RBX, REG_RSI, REG_RDI, REG_RBP, REG_RSP, REG_R8, REG_R9,
	REG_R10, REG_R11, REG_R12, REG_R13, REG_R14, REG_R15, REG_RIP,
};

static void x86_64_frame_is_the_systems(void **state)
{
	ucontext_t context;
	struct sf_regs regs = { 0 };
	(void)state;

	start(&sf_arch_x86_64);
	memset(&context, 0, sizeof(context));
	for (unsigned i = 0; i < 17; i++)
		context.uc_mcontext.gregs[dwarf_gregs[i]] = 1000 + i;
	recorded_bytes(&r, STACK, &context, sizeof(context));
	sf_reg_set(&regs, sf_arch_x86_64.sp, STACK);
	assert_true(sf_arch_x86_64.sigreturn(&r.still.memory, &regs));
	for (unsigned i = 0; i < 17; i++)
		assert_int_equal(regs.r[i], 1000 + i);
	assert_int_equal(regs.pc, 1016);
	assert_int_equal(regs.known, (1 << 17) - 1);
}
#endif

static void x86_64_trampolines(void **state)
{
	static const uint8_t glibc[] = { 0x48, 0xc7, 0xc0, 0x0f, 0, 0, 0, 0x0f, 0x05 };
	static const uint8_t other[] = { 0xb8, 0x0f, 0, 0, 0, 0x0f, 0x05 };
	static const uint8_t not_one[] = { 0x48, 0xc7, 0xc0, 0x10, 0, 0, 0, 0x0f, 0x05 };
	bool (*const is)(const struct sf_reader *, uint64_t) = sf_arch_x86_64.is_sigreturn;
	(void)state;

	start(&sf_arch_x86_64);
	assert_false(is(&r.still.memory, CODE));
	assert_false(is(&r.still.memory, 0));
	recorded_bytes(&r, CODE + 16, glibc, sizeof(glibc));
	recorded_bytes(&r, CODE + 32, other, sizeof(other));
	recorded_bytes(&r, CODE + 48, not_one, sizeof(not_one));
	assert_true(is(&r.still.memory, CODE + 16));
	assert_true(is(&r.still.memory, CODE + 23)); /* at the syscall */
	assert_true(is(&r.still.memory, CODE + 32));
	assert_true(is(&r.still.memory, CODE + 37));
	assert_false(is(&r.still.memory, CODE + 15));
	assert_false(is(&r.still.memory, CODE + 17));
	assert_false(is(&r.still.memory, CODE + 48));
	assert_false(is(&r.still.memory, CODE + 55));
}

struct call {
	bool is_call;
	uint64_t target;
	uint8_t size, bytes[13];
};

#define LOADED 0x1122334455667788
#define LOADED_BYTES 0x88, 0x77, 0x66, 0x55, 0x44, 0x33, 0x22, 0x11

/* They end at CODE + 16. */
static const struct call x86_64_calls[] = {
	{ true, CODE + 16 - 16, 5, { 0xe8, 0xf0, 0xff, 0xff, 0xff } }, /* call rel32 */
	{ true, 0, 2, { 0xff, 0xd0 } },                         /* call *%rax */
	{ true, 0, 3, { 0x41, 0xff, 0xd7 } },                   /* call *%r15 */
	{ true, 0, 2, { 0xff, 0x13 } },                         /* call *(%rbx) */
	{ true, 0, 3, { 0xff, 0x50, 0x18 } },                   /* call *24(%rax) */
	{ true, 0, 3, { 0xff, 0x14, 0xc7 } },                   /* call *(%rdi,%rax,8) */
	{ true, 0, 4, { 0xff, 0x54, 0x24, 0x08 } },             /* call *8(%rsp) */
	{ true, 0, 6, { 0xff, 0x15, 1, 2, 3, 4 } },             /* call *x(%rip) */
	{ true, 0, 6, { 0xff, 0x90, 0, 1, 0, 0 } },             /* call *256(%rax) */
	{ true, 0, 7, { 0xff, 0x94, 0xc0, 0, 1, 0, 0 } },       /* call *256(%rax,%rax,8) */
	{ true, LOADED, 13, { 0x49, 0xba, LOADED_BYTES, 0x41, 0xff, 0xd2 } }, /* mov $n, %r10; call *%r10 */
	{ true, LOADED, 12, { 0x48, 0xb8, LOADED_BYTES, 0xff, 0xd0 } },       /* mov $n, %rax; call *%rax */
	{ true, 0, 13, { 0x49, 0xbb, LOADED_BYTES, 0x41, 0xff, 0xd2 } },      /* mov $n, %r11; call *%r10 */
	{ true, 0, 13, { 0x48, 0xba, LOADED_BYTES, 0x41, 0xff, 0xd2 } },      /* mov $n, %rdx; call *%r10 */
	{ true, 0, 12, { 0x49, 0xb8, LOADED_BYTES, 0xff, 0xd0 } },            /* mov $n, %r8; call *%rax */
	{ false, 0, 2, { 0xff, 0xe0 } },                        /* jmp *%rax */
	{ false, 0, 5, { 0xe9, 0, 0, 0, 0 } },                  /* jmp rel32 */
	{ false, 0, 2, { 0xff, 0x15 } },                        /* cut short */
	{ false, 0, 1, { 0x90 } },
};

static void x86_64_call_instructions(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(x86_64_calls) / sizeof(x86_64_calls[0]); i++) {
		const struct call *call = &x86_64_calls[i];
		uint64_t target = 1;

		start(&sf_arch_x86_64);
		recorded_bytes(&r, CODE + 16 - call->size, call->bytes, call->size);
		if (sf_arch_x86_64.is_behind_call(&r.still.memory, CODE + 16, &target) != call->is_call)
			fail_msg("call %zu", i);
		if (call->is_call)
			assert_int_equal(target, call->target);
	}
	assert_false(sf_arch_x86_64.is_behind_call(&r.still.memory, 4, &(uint64_t){ 0 }));
}

/* struct rt_sigframe of arch/arm64: written out here a second time, as the kernel declares it. */
struct aarch64_frame {
	uint8_t info[128];
	struct {
		uint64_t flags, link, stack[3];
		uint8_t mask[128];
		_Alignas(16) struct {
			uint64_t fault_address, regs[31], sp, pc, pstate;
		} mcontext;
	} uc;
};

static void aarch64_frame_is_the_kernels(void **state)
{
	struct aarch64_frame frame = { .uc.mcontext.sp = 77, .uc.mcontext.pc = 88 };
	struct sf_regs regs = { 0 };
	(void)state;

	start(&sf_arch_aarch64);
	for (unsigned i = 0; i < 31; i++)
		frame.uc.mcontext.regs[i] = 1000 + i;
	recorded_bytes(&r, STACK, &frame, sizeof(frame));
	sf_reg_set(&regs, sf_arch_aarch64.sp, STACK);
	assert_true(sf_arch_aarch64.sigreturn(&r.still.memory, &regs));
	for (unsigned i = 0; i < 31; i++)
		assert_int_equal(regs.r[i], 1000 + i);
	assert_int_equal(regs.r[31], 77);
	assert_int_equal(regs.pc, 88);
	assert_int_equal(regs.known, UINT32_MAX);
}

static void aarch64_code(void **state)
{
	uint64_t target;
	uint8_t pushed = 1;
	const struct sf_reader *memory = &r.still.memory;
	(void)state;

	start(&sf_arch_aarch64);
	recorded_put32(&r, CODE + 16, 0xd2801168); /* mov x8, #139 */
	recorded_put32(&r, CODE + 20, 0xd4000001); /* svc #0 */
	assert_true(sf_arch_aarch64.is_sigreturn(memory, CODE + 16));
	assert_true(sf_arch_aarch64.is_sigreturn(memory, CODE + 20));
	assert_false(sf_arch_aarch64.is_sigreturn(memory, CODE + 24));

	recorded_put32(&r, CODE + 24, 0x97fffffa); /* bl . - 24 */
	assert_true(sf_arch_aarch64.is_behind_call(memory, CODE + 28, &target));
	assert_int_equal(target, CODE);
	recorded_put32(&r, CODE + 24, 0x94000002); /* bl . + 8 */
	assert_true(sf_arch_aarch64.is_behind_call(memory, CODE + 28, &target));
	assert_int_equal(target, CODE + 32);
	recorded_put32(&r, CODE + 24, 0xd63f0020); /* blr x1 */
	assert_true(sf_arch_aarch64.is_behind_call(memory, CODE + 28, &target));
	assert_int_equal(target, 0);
	recorded_put32(&r, CODE + 24, 0xd73f0c22); /* blrab x1, x2 */
	assert_true(sf_arch_aarch64.is_behind_call(memory, CODE + 28, &target));
	recorded_put32(&r, CODE + 24, 0xd61f0020); /* br x1 */
	assert_false(sf_arch_aarch64.is_behind_call(memory, CODE + 28, &target));

	recorded_put32(&r, CODE + 32, 0xa9be7bfd); /* stp x29, x30, [sp, #-32]! */
	assert_true(sf_arch_aarch64.is_frame_edge(memory, CODE + 32, &pushed));
	assert_int_equal(pushed, 0);
	recorded_put32(&r, CODE + 32, 0xd65f03c0); /* ret */
	assert_true(sf_arch_aarch64.is_frame_edge(memory, CODE + 32, &pushed));
	recorded_put32(&r, CODE + 32, 0xa8c27bfd); /* ldp x29, x30, [sp], #32 */
	assert_false(sf_arch_aarch64.is_frame_edge(memory, CODE + 32, &pushed));
}

static void x86_64_edges(void **state)
{
	static const uint8_t prologue[] = { 0xf3, 0x0f, 0x1e, 0xfa, 0x55, 0x48, 0x89, 0xe5, 0x90,
					    0xc9, 0xc3 };
	static const int8_t pushed_at[] = { 0, -1, -1, -1, 0, 8, -1, -1, -1, -1, 0 };
	(void)state;

	start(&sf_arch_x86_64);
	recorded_bytes(&r, CODE, prologue, sizeof(prologue));
	for (unsigned i = 0; i < sizeof(prologue); i++) {
		uint8_t pushed = 99;

		if (sf_arch_x86_64.is_frame_edge(&r.still.memory, CODE + i, &pushed))
			assert_int_equal(pushed, pushed_at[i]);
		else
			assert_int_equal(pushed_at[i], -1);
	}
}

static void every_list_has_words(void **state)
{
	(void)state;
	assert_string_equal(sf_end_word(SF_END_ROOT), "root");
	assert_string_equal(sf_end_text(SF_END_DEPTH), "more frames than --max-depth");
	assert_string_equal(sf_loss_word(SF_LOSS_UNSEEN), "unseen");
	assert_string_equal(sf_loss_text(SF_LOSS_GONE), "the thread ended before its first sample, or its next one");
	assert_string_equal(sf_state_word(SF_STATE_BLOCKED), "blocked");
	assert_string_equal(sf_via_word(SF_VIA_FRAME_POINTER), "frame-pointer");
	assert_string_equal(sf_end_word(SF_N_ENDS), "unknown");
	assert_string_equal(sf_end_text(UINT32_MAX), "unknown");
	assert_string_equal(sf_loss_word(SF_N_LOSSES), "unknown");
	assert_string_equal(sf_loss_text(SF_N_LOSSES), "unknown");
	assert_string_equal(sf_state_word(SF_N_STATES), "unknown");
	assert_string_equal(sf_via_word(SF_N_VIAS), "unknown");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(found_by_machine),
		cmocka_unit_test(saved_registers_fit),
#if defined(__x86_64__)
		cmocka_unit_test(x86_64_frame_is_the_systems),
#endif
		cmocka_unit_test(x86_64_trampolines),
		cmocka_unit_test(x86_64_call_instructions),
		cmocka_unit_test(x86_64_edges),
		cmocka_unit_test(aarch64_frame_is_the_kernels),
		cmocka_unit_test(aarch64_code),
		cmocka_unit_test(every_list_has_words),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
