/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The same code under the same build id, built twice: with unwind rows that are right, and (FALSE_ROWS) with rows
 * that lead from `through` to `liar`, whose address lies in its frame, and not to `caller`. Lasts for so many seconds.
 *
 * same_id SECONDS
 */
#include "program.h"

static int64_t start_ns;
static double seconds;

__attribute__((used)) static NOINLINE void work(void)
{
	while (lasts(start_ns, seconds)) {
		for (volatile unsigned i = 0; i < 10000; i++)
			;
	}
}

__attribute__((used)) static NOINLINE void liar(void)
{
	work();
	NO_TAIL_CALL();
}

#ifdef FALSE_ROWS
#define ROWS_OF_THE_FRAME "16"
#else
#define ROWS_OF_THE_FRAME "72"
#endif

void through(void);
__asm__(".text\n"
	".type through, @function\n"
	"through:\n"
	".cfi_startproc\n"
	"	sub $72, %rsp\n"
	"	.cfi_adjust_cfa_offset " ROWS_OF_THE_FRAME "\n"
	"	lea liar+5(%rip), %rax\n"
	"	mov %rax, 16(%rsp)\n"
	"	call work\n"
	"	add $72, %rsp\n"
	"	.cfi_adjust_cfa_offset -" ROWS_OF_THE_FRAME "\n"
	"	ret\n"
	".cfi_endproc\n"
	".size through, . - through\n");

static NOINLINE void caller(void)
{
	through();
	NO_TAIL_CALL();
}

int main(int argc, char **argv)
{
	seconds = argument(argc, argv, 1, 2);
	start_ns = now_ns();
	bounded(120);
	ready();
	caller();
	return 0;
}
