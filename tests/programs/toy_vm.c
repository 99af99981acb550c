/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A bytecode interpreter with frames of its own: the runtime for tests (src/frozen/toy). Its methods `outer` and `inner`
 * call each other from a thread that spins, one that sleeps, and one that sleeps in native code that no rule leads out of.
 * Each method's frame is one of toy_enter, which has no unwind rules and no frame pointer; between two of them is the
 * interpreter's loop, which is ordinary native code.
 *
 *     toy_vm           toy_enter stays where it is
 *     toy_vm copies    the method that spins is entered by a copy of toy_enter, in a page that is new each time
 *     toy_vm java LIBJVM CLASSES CLASS [ARGUMENT...]    a Java virtual machine runs the class in the same process
 */
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "frozen/toy/toy.h"
#include "java_vm.h"
#include "program.h"

enum { CALL, SPIN, SLEEP, STUCK, JUMP, CALL_COPY, RETURN };

#define PAGE 4096u
#define COPY_NS 300000000 /* for which a copy is used */

#define ADDRESS(thing) ((uint64_t)(uintptr_t)(thing))

static struct sf_toy_thread threads[3] = { { .name = "a toy thread that spins" },
					   { .name = "a toy thread that sleeps" },
					   { .name = "a toy thread that is stuck" } };
static __thread struct sf_toy_thread *current;
static struct sf_toy_method methods[6];

void toy_enter(struct sf_toy_method *method);
extern char toy_enter_end[];
void toy_stuck(void);
void toy_run(struct sf_toy_method *method, uint64_t unused, uint64_t *index);
void toy_sleep(void);

/* Without unwind rules. As src/frozen/toy/toy.h says; and one that nothing leads out of. */
__asm__(".text\n"
	".globl toy_enter, toy_enter_end, toy_stuck\n"
	".type toy_enter, @function\n"
	"toy_enter:\n"
	"	push %rdi\n"
	"	push $0\n"
	"	mov %rsp, %rdx\n"
	"	sub $8, %rsp\n"
	"	.byte 0xe8\n"
	"	.long toy_run - . - 4\n"
	"	add $24, %rsp\n"
	"	ret\n"
	"toy_enter_end:\n"
	".size toy_enter, . - toy_enter\n"
	".type toy_stuck, @function\n"
	"toy_stuck:\n"
	"	push %rbp\n"
	"	mov $1, %ebp\n"
	"	sub $4096, %rsp\n"
	"	.byte 0xe8\n"
	"	.long toy_sleep - . - 4\n"
	"	add $4096, %rsp\n"
	"	pop %rbp\n"
	"	ret\n"
	".size toy_stuck, . - toy_stuck\n");

__attribute__((visibility("default"))) struct sf_toy_vm sf_toy_vm;

NOINLINE void toy_sleep(void)
{
	sleep_ns(600 * NS_PER_S);
	NO_TAIL_CALL();
}

static NOINLINE void spin(void)
{
	for (volatile int i = 0; i < 100000; i++)
		;
	NO_TAIL_CALL();
}

typedef void enter_fn(struct sf_toy_method *method);

/* A copy of toy_enter in a page of its own, as near as its call reaches; at a few addresses in turn. */
static enter_fn *make_copy(void)
{
	static unsigned turn;
	const uint64_t at = (ADDRESS(toy_enter) & -(uint64_t)PAGE) + (16u << 20) + 2 * PAGE * (turn++ % 3);
	uint8_t *page = mmap((void *)(uintptr_t)at, PAGE, PROT_READ | PROT_WRITE | PROT_EXEC,
			     MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
	const int32_t distance = (int32_t)(ADDRESS(toy_run) - (at + SF_TOY_RETURN));

	if (page == MAP_FAILED)
		abort();
	memcpy(page, (const void *)toy_enter, SF_TOY_SIZE);
	memcpy(page + SF_TOY_RETURN - sizeof(distance), &distance, sizeof(distance));
	return (enter_fn *)(uintptr_t)at;
}

/* The copy is known before it runs, and until it is gone. */
static void call_copy(struct sf_toy_method *method)
{
	enter_fn *enter = make_copy();

	__atomic_store_n(&sf_toy_vm.copy, ADDRESS(enter), __ATOMIC_RELEASE);
	enter(method);
	__atomic_store_n(&sf_toy_vm.copy, 0, __ATOMIC_RELEASE);
	munmap((void *)(uintptr_t)enter, PAGE);
}

/* Spins for as long as a copy is used. */
static void spin_long(void)
{
	const int64_t end_ns = now_ns() + COPY_NS;

	while (now_ns() < end_ns)
		spin();
}

/* The interpreter's loop: one operation and its operand for each index. */
void toy_run(struct sf_toy_method *method, uint64_t unused, uint64_t *index)
{
	const uint8_t *code = (const uint8_t *)(uintptr_t)method->code;

	(void)unused;
	for (;;) {
		current->top = ADDRESS(index);
		switch (code[2 * *index]) {
		case CALL:
			toy_enter(&methods[code[2 * *index + 1]]);
			break;
		case SPIN:
			spin();
			break;
		case SLEEP:
			toy_sleep();
			break;
		case STUCK:
			toy_stuck();
			break;
		case CALL_COPY:
			call_copy(&methods[code[2 * *index + 1]]);
			break;
		case RETURN:
			spin_long();
			return;
		case JUMP:
			*index = code[2 * *index + 1];
			continue;
		}
		++*index;
	}
}

/* `outer` calls `inner` at its third bytecode; that one does the work at its second, for ever. */
static uint8_t codes[6][8] = {
	{ JUMP, 2, SPIN, 0, CALL, 1 }, { JUMP, 1, SPIN, 0, JUMP, 1 },
	{ JUMP, 2, SPIN, 0, CALL, 3 }, { JUMP, 1, SLEEP, 0, JUMP, 1 },
	{ JUMP, 2, SPIN, 0, CALL, 5 }, { JUMP, 1, STUCK, 0, JUMP, 1 },
};

static void *run(void *arg)
{
	const uint64_t number = (uint64_t)(uintptr_t)arg;

	current = &threads[number];
	current->tid = (uint64_t)syscall(SYS_gettid);
	toy_enter(&methods[2 * number]);
	return NULL;
}

int main(int argc, char **argv)
{
	pthread_t thread;

	bounded(300);
	if (argc == 2) {
		memcpy(codes[0], (const uint8_t[]){ JUMP, 2, SPIN, 0, CALL_COPY, 1, JUMP, 2 }, 8);
		memcpy(codes[1], (const uint8_t[]){ JUMP, 1, RETURN, 0 }, 4);
	}
	for (uint64_t i = 0; i < 6; i++)
		methods[i] = (struct sf_toy_method){
			.name = ADDRESS(i % 2 ? "toy.inner" : "toy.outer"), .file = ADDRESS("program.toy"),
			.first_line = i % 2 ? 200 : 100, .code = ADDRESS(codes[i]),
		};
	sf_toy_vm = (struct sf_toy_vm){ SF_TOY_MAGIC, ADDRESS(toy_enter), ADDRESS(toy_enter_end),
					ADDRESS(threads), 3, 0 };
	for (uintptr_t i = 0; i < 3; i++)
		pthread_create(&thread, NULL, run, (void *)i);
	while (!threads[2].top)
		sleep_ns(1000000);
	if (argc > 2)
		run_java(argc - 2, argv + 2); /* says "ready" itself */
	ready();
	pthread_join(thread, NULL);
	return 0;
}
