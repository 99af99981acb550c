/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Threads on small and strange stacks, each spinning where a profiler's signal hurts most:
 *
 *   idle      has an alternate stack that only a foreign handler would use; below it, a page that nobody may touch
 *   handler   spins in handlers of its own, one inside the other, on its alternate stack
 *   nodefer   a handler that interrupts itself, twenty deep
 *   jump      leaves its handler by siglongjmp, on the alternate stack, with and without the saved mask
 *   small     the smallest stack that a thread may have
 *
 * in_stacks SECONDS [SIZE]       SIZE of the alternate stack: `min` (what the kernel says its frame needs), or bytes
 *
 * Fails when one of them does not get on (each goes on for ten turns at least, however busy the machine is), or when
 * the page below the alternate stack was touched (SIGSEGV).
 */
#include <pthread.h>
#include <setjmp.h>
#include <sys/auxv.h>
#include <sys/mman.h>

#include "in_program.h"

#ifndef AT_MINSIGSTKSZ
#define AT_MINSIGSTKSZ 51
#endif
#define PAGE 4096
#define LEAST_TURNS 10

static int64_t end_ns;
static size_t altstack_size;
static __thread sigjmp_buf back;
static __thread volatile int nested;

static bool goes_on(unsigned long turns)
{
	return turns < LEAST_TURNS || now_ns() < end_ns;
}

/* Its lowest byte stands right above a guard page. */
static bool use_altstack(size_t size)
{
	size_t whole = PAGE + (size + PAGE - 1) / PAGE * PAGE;
	char *memory = mmap(NULL, whole, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	stack_t stack = { .ss_sp = memory + PAGE, .ss_size = size };

	if (memory == MAP_FAILED || mprotect(memory, PAGE, PROT_NONE) != 0)
		return false;
	return sigaltstack(&stack, NULL) == 0;
}

static void on_nested(int signal)
{
	burn_ns(500000);
	if (signal == SIGUSR1)
		pthread_kill(pthread_self(), SIGUSR2);
	burn_ns(500000);
}

static void on_nodefer(int signal)
{
	burn_ns(100000);
	if (++nested < 20)
		pthread_kill(pthread_self(), signal);
	nested--;
}

static void on_jump(int signal)
{
	burn_ns(200000);
	siglongjmp(back, signal);
}

static NOINLINE unsigned long idle_altstack(void)
{
	unsigned long turns = 0;

	for (; goes_on(turns); turns++)
		burn_ns(1000000);
	return turns;
}

static void *run_idle(void *arg)
{
	(void)arg;
	if (!use_altstack(altstack_size))
		return NULL;
	return (void *)idle_altstack();
}

static void *run_handler(void *arg)
{
	unsigned long turns = 0;

	(void)arg;
	if (!use_altstack(65536))
		return NULL;
	for (; goes_on(turns); turns++)
		pthread_kill(pthread_self(), SIGUSR1);
	return (void *)turns;
}

static void *run_nodefer(void *arg)
{
	unsigned long turns = 0;

	(void)arg;
	for (; goes_on(turns); turns++)
		pthread_kill(pthread_self(), SIGRTMIN + 5);
	return (void *)turns;
}

static void *run_jump(void *arg)
{
	volatile unsigned long turns = 0;

	(void)arg;
	if (!use_altstack(65536))
		return NULL;
	while (goes_on(turns)) {
		sigset_t set;

		turns++;
		if (sigsetjmp(back, turns % 2) == 0)
			pthread_kill(pthread_self(), SIGRTMIN + 6);
		burn_ns(50000);
		/* The mask was not saved: the signal is still blocked. Also what a foreign handler would have blocked. */
		sigemptyset(&set);
		sigaddset(&set, SIGRTMIN + 6);
		pthread_sigmask(SIG_UNBLOCK, &set, NULL);
		pthread_sigmask(SIG_BLOCK, NULL, &set);
		if (sigismember(&set, SIGUSR1) || sigismember(&set, SIGPROF)) {
			printf("jump: came back with foreign signals blocked\n");
			return NULL;
		}
	}
	return (void *)turns;
}

static void *run_without(void *arg)
{
	(void)arg;
	return (void *)idle_altstack();
}

static const struct {
	const char *name;
	void *(*run)(void *);
	bool small;
} kinds[] = {
	{ "idle", run_idle, false },       { "handler", run_handler, false },
	{ "nodefer", run_nodefer, false }, { "jump", run_jump, false },
	{ "small", run_without, true },    { "small with altstack", run_idle, true },
};
#define N_KINDS (sizeof(kinds) / sizeof(kinds[0]))

static void handle(int signal, void (*handler)(int), int flags)
{
	struct sigaction action = { .sa_handler = handler, .sa_flags = flags };

	sigaction(signal, &action, NULL);
}

static bool start(size_t i, pthread_t *ret)
{
	pthread_attr_t attributes;
	bool fine;

	pthread_attr_init(&attributes);
	if (kinds[i].small)
		pthread_attr_setstacksize(&attributes, sysconf(_SC_THREAD_STACK_MIN));
	fine = pthread_create(ret, &attributes, kinds[i].run, NULL) == 0;
	pthread_attr_destroy(&attributes);
	return fine;
}

int main(int argc, char **argv)
{
	double seconds = argument(argc, argv, 1, 2);
	pthread_t threads[N_KINDS];
	unsigned bad = 0;

	altstack_size = argument_is(argc, argv, 2, "min") ? getauxval(AT_MINSIGSTKSZ) :
							    (size_t)argument(argc, argv, 2, 8192);
	bounded(60 + 20 * seconds);
	handle(SIGUSR1, on_nested, SA_ONSTACK | SA_RESTART);
	handle(SIGUSR2, on_nested, SA_ONSTACK | SA_RESTART);
	handle(SIGRTMIN + 5, on_nodefer, SA_NODEFER);
	handle(SIGRTMIN + 6, on_jump, SA_ONSTACK);
	end_ns = now_ns() + seconds * NS_PER_S;
	printf("altstack %zu\n", altstack_size);
	ready();
	for (size_t i = 0; i < N_KINDS; i++)
		if (!start(i, &threads[i]))
			return 2;
	for (size_t i = 0; i < N_KINDS; i++) {
		void *turns;

		pthread_join(threads[i], &turns);
		printf("%s %lu\n", kinds[i].name, (unsigned long)turns);
		bad += (unsigned long)turns < LEAST_TURNS;
	}
	return bad != 0;
}
