/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Functions without unwind rules, as FreePascal and JIT compilers make them: outer calls framed, which calls middle, which
 * calls leaf, until a signal ends it after SECONDS. Only framed keeps a frame pointer, and outer has set that register to 0.
 *
 * no_rules SECONDS [copied | named]
 *
 * copied: from a copy in anonymous memory, as code of a JIT compiler is. named: the same, with a perf map in /tmp, which the
 * program leaves there as those compilers do. In it each function is made_outer and so on.
 */
#include <sys/mman.h>

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
	"start_of_framed:\n"
	".globl start_of_framed\n"
	"framed:\n"
	"	push %rbp\n"
	"	mov %rsp, %rbp\n"
	"	sub $16, %rsp\n"
	"	call middle\n"
	"	leave\n"
	"	ret\n"
	".size framed, . - framed\n"
	".type middle, @function\n"
	"start_of_middle:\n"
	".globl start_of_middle\n"
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
	"start_of_leaf:\n"
	".globl start_of_leaf\n"
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
	".size leaf, . - leaf\n"
	".globl end_of_leaf\n"
	"end_of_leaf:\n");

void outer(void);
extern const char start_of_framed[], start_of_middle[], start_of_leaf[], end_of_leaf[];

static void write_line(FILE *map, const char *copy, const char *start, const char *end, const char *name)
{
	fprintf(map, "%lx %lx %s\n", (unsigned long)(copy + (start - (const char *)outer)), (unsigned long)(end - start), name);
}

static void write_map(const char *copy)
{
	char path[64];
	FILE *map;

	snprintf(path, sizeof(path), "/tmp/perf-%d.map", getpid());
	map = fopen(path, "w");
	if (!map)
		exit(1);
	write_line(map, copy, (const char *)outer, end_of_leaf, "code that was freed");
	write_line(map, copy, (const char *)outer, start_of_framed, "made_outer (in a map)");
	write_line(map, copy, start_of_framed, start_of_middle, "made_framed");
	write_line(map, copy, start_of_middle, start_of_leaf, "made_middle");
	write_line(map, copy, start_of_leaf, end_of_leaf, "made_leaf");
	fclose(map);
}

static void *copy_code(void)
{
	const size_t size = (size_t)(end_of_leaf - (const char *)outer);
	void *copy = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	memcpy(copy, (const void *)outer, size);
	mprotect(copy, size, PROT_READ | PROT_EXEC);
	return copy;
}

int main(int argc, char **argv)
{
	void *copy = argc > 2 ? copy_code() : NULL;

	bounded((unsigned)argument(argc, argv, 1, 120));
	if (argument_is(argc, argv, 2, "named"))
		write_map(copy);
	ready();
	if (copy)
		((void (*)(void))copy)();
	else
		outer();
	NO_TAIL_CALL();
	return 0;
}
