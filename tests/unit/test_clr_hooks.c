/* SPDX-License-Identifier: Apache-2.0 */
/* The hooks (agent/coreclr/clr_hooks.h), called as managed code calls them: they note the method, and keep every register. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "agent/coreclr/clr_hooks.h"
#include "agent/coreclr/shadow_writer.h"
#include "frozen/signal/state.h"

#define DEPTH 64
#define N_GENERAL 15
#define N_VECTOR 16

/* All general registers but rsp, in the order of the assembly below, and the vector registers. */
struct registers {
	uint64_t general[N_GENERAL];
	uint64_t vector[N_VECTOR][2];
};

enum { RAX, RBX, RCX, RDX, RSI, RDI, RBP, R8, R9, R10, R11, R12, R13, R14, R15 };

/* Calls `hook` with these registers, and stores what they are afterwards. Returns the stack pointer at the call. */
uint64_t call_hook(struct registers *registers, void *hook);

__asm__(".text\n"
	".globl call_hook\n"
	"call_hook:\n"
	"push %rbx; push %rbp; push %r12; push %r13; push %r14; push %r15\n"
	"push %rdi; push %rsi; sub $8, %rsp\n"
	".irp register, 0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15\n"
	"movups 120+16*\\register(%rdi), %xmm\\register\n"
	".endr\n"
	"mov 0(%rdi), %rax; mov 8(%rdi), %rbx; mov 16(%rdi), %rcx; mov 24(%rdi), %rdx; mov 32(%rdi), %rsi\n"
	"mov 48(%rdi), %rbp; mov 56(%rdi), %r8; mov 64(%rdi), %r9; mov 72(%rdi), %r10; mov 80(%rdi), %r11\n"
	"mov 88(%rdi), %r12; mov 96(%rdi), %r13; mov 104(%rdi), %r14; mov 112(%rdi), %r15; mov 40(%rdi), %rdi\n"
	"call *8(%rsp)\n"
	"mov %rdi, (%rsp); mov 16(%rsp), %rdi\n"
	".irp register, 0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15\n"
	"movups %xmm\\register, 120+16*\\register(%rdi)\n"
	".endr\n"
	"mov %rax, 0(%rdi); mov %rbx, 8(%rdi); mov %rcx, 16(%rdi); mov %rdx, 24(%rdi); mov %rsi, 32(%rdi)\n"
	"mov %rbp, 48(%rdi); mov %r8, 56(%rdi); mov %r9, 64(%rdi); mov %r10, 72(%rdi); mov %r11, 80(%rdi)\n"
	"mov %r12, 88(%rdi); mov %r13, 96(%rdi); mov %r14, 104(%rdi); mov %r15, 112(%rdi)\n"
	"mov (%rsp), %rax; mov %rax, 40(%rdi)\n"
	"mov %rsp, %rax\n"
	"add $24, %rsp\n"
	"pop %r15; pop %r14; pop %r13; pop %r12; pop %rbp; pop %rbx\n"
	"ret\n");

static struct sf_shadow_table *table;
static struct sf_shadow_entry entries[DEPTH];
static void *enter, *leave;

static int set_up(void **state)
{
	(void)state;
	assert_true(sf_clr_hooks(&enter, &leave));
	table = calloc(1, sizeof(*table));
	assert_non_null(table);
	memset(entries, 0, sizeof(entries));
	table->stacks[0].entries = entries;
	table->stacks[0].mask = DEPTH - 1;
	sf_handler.config.pid = getpid();
	sf_shadow_table = table;
	sf_clr_hooks_on = 1;
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	sf_shadow_table = NULL;
	free(table);
	return 0;
}

static struct registers numbered(void)
{
	struct registers result;
	uint64_t *numbers = (uint64_t *)&result;

	for (size_t i = 0; i < sizeof(result) / sizeof(*numbers); i++)
		numbers[i] = UINT64_C(0x0101010101010101) * (i + 1);
	return result;
}

static uint64_t call_and_compare(void *hook)
{
	struct registers registers = numbered();
	const struct registers before = registers;
	const uint64_t sp = call_hook(&registers, hook);

	for (size_t i = 0; i < N_GENERAL; i++)
		assert_int_equal(registers.general[i], before.general[i]);
	assert_memory_equal(registers.vector, before.vector, sizeof(before.vector));
	return sp;
}

static void test_a_method_is_noted(void **state)
{
	const uint64_t function = numbered().general[R14];
	const uint64_t sp = call_and_compare(enter);
	const struct sf_shadow_stack *stack = sf_shadow_find(table, gettid());

	(void)state;
	assert_non_null(stack);
	assert_int_equal(sf_shadow_n(stack->word), 1);
	assert_int_equal(entries[0].function, function);
	assert_int_equal(entries[0].frame, sp);
	assert_in_range(entries[0].pc, (uint64_t)(uintptr_t)call_hook, (uint64_t)(uintptr_t)call_hook + 512);
	call_and_compare(leave); /* of another method: the number is in another register */
	assert_int_equal(sf_shadow_n(stack->word), 1);
	entries[0].function = numbered().general[RDI];
	call_and_compare(leave);
	assert_int_equal(sf_shadow_n(stack->word), 0);
}

static void test_nothing_is_noted_when_the_profile_has_ended(void **state)
{
	(void)state;
	sf_clr_hooks_on = 0;
	call_and_compare(enter);
	call_and_compare(leave);
	assert_null(sf_shadow_find(table, gettid()));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_a_method_is_noted, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_nothing_is_noted_when_the_profile_has_ended, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
