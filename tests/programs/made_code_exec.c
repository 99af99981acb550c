/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Executes itself, TURNS times, each time out of code that it has made just before, which has neither a file nor unwind rules and
 * in which it has been for 30 ms of its CPU time. An exec keeps the CPU time: the last one says all of it, and how much was
 * used between an exec, or the start, and main(): by the kernel and the loader, mostly before an agent begins.
 *
 * made_code_exec [TURNS [BEFORE-MAIN AT-EXEC]]      the program to itself: nanoseconds of CPU time
 */
#include <sys/mman.h>

#include "program.h"

#define TURN_NS 30000000

/*
 * Counts the argument down. Nothing leads out of it for one that does not run it: the frame pointer is a number, and the stack
 * pointer moves by what a register has.
 */
static const unsigned char code[] = {
	0x48, 0x89, 0xea,                         /* mov %rbp, %rdx */
	0xbd, 0x01, 0x00, 0x00, 0x00,             /* mov $1, %ebp */
	0x48, 0x89, 0xf0,                         /* mov %rsi, %rax */
	0x48, 0x29, 0xc4,                         /* sub %rax, %rsp */
	0x48, 0x89, 0xf9,                         /* mov %rdi, %rcx */
	0x48, 0xff, 0xc9,                         /* 1: dec %rcx */
	0x75, 0xfb,                               /* jnz 1b */
	0x48, 0x01, 0xc4,                         /* add %rax, %rsp */
	0x48, 0x89, 0xd5,                         /* mov %rdx, %rbp */
	0xc3,                                     /* ret */
};

static void be_in_made_code(int64_t until_ns)
{
	void *made = mmap(NULL, sizeof(code), PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	void (*count_down)(unsigned long, unsigned long stack);

	if (made == MAP_FAILED)
		exit(1);
	memcpy(made, code, sizeof(code));
	memcpy(&count_down, &made, sizeof(made));
	while (clock_ns(CLOCK_PROCESS_CPUTIME_ID) < until_ns)
		count_down(100000, 32);
}

int main(int argc, char **argv)
{
	const int64_t began_ns = clock_ns(CLOCK_PROCESS_CPUTIME_ID);
	const double before_ns = argument(argc, argv, 2, 0) + (double)began_ns - argument(argc, argv, 3, 0);
	const int turns = (int)argument(argc, argv, 1, 10);
	char left[16], before[32], at_exec[32];

	bounded(120);
	be_in_made_code(began_ns + TURN_NS);
	if (turns > 1) {
		snprintf(left, sizeof(left), "%d", turns - 1);
		snprintf(before, sizeof(before), "%.0f", before_ns);
		snprintf(at_exec, sizeof(at_exec), "%lld", (long long)clock_ns(CLOCK_PROCESS_CPUTIME_ID));
		execl("/proc/self/exe", argv[0], left, before, at_exec, (char *)NULL);
		return 1;
	}
	printf("before_main %.6f\n", before_ns / 1e9);
	tell_cpu();
	return 0;
}
