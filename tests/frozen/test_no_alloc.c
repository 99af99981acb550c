/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Frozen code allocates nothing and takes no lock: malloc and its kin and pthread_mutex_lock are
 * replaced by versions that abort while `frozen` is set, and a hundred thousand walks are made and
 * written to a ring with it set.
 *
 * The test walks this program's own stack, copied in a signal handler below a deep recursion: without a table, by the
 * instructions of the functions or by frame pointers, and by a table with the one row that every function with a frame
 * pointer obeys. The compiler decides which of the first two: it ends functions with `leave`, or adds to sp.
 * (Only x86-64 has such a row: elsewhere the frame record may lie anywhere in the frame.)
 * Both walks must see the recursion in full, so that it is known that they did walk.
 */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#include "frozen/output/outbox.h"
#include "frozen/unwind/walk.h"

#define DEPTH 64
#define WALKS 100000

static volatile sig_atomic_t frozen;

static void check_thawed(void)
{
	static const char text[] = "frozen code called the allocator or took a lock\n";

	if (!frozen)
		return;
	frozen = 0;
	if (write(STDERR_FILENO, text, sizeof(text) - 1) < 0)
		_exit(1);
	abort();
}

#include "replaced_allocator.h"

/* This program has one thread, and the C library's own locks do not come here. */
REPLACEMENT int pthread_mutex_lock(pthread_mutex_t *mutex)
{
	(void)mutex;
	check_thawed();
	return 0;
}

static _Alignas(16) uint8_t stack_copy[1 << 20];
static struct sf_still still;
#define MAX_REGIONS 64
static _Alignas(8) uint8_t map_bytes[sizeof(struct sf_code_map) +
				     MAX_REGIONS * sizeof(struct sf_region)];
static struct sf_code_map *const map = (struct sf_code_map *)map_bytes;
static struct {
	struct sf_table_header header;
	struct sf_row row;
	struct sf_rules rules;
} block;
static uint8_t *guard_page;
static uint64_t stack_top; /* an address in main's frame; the copy ends behind it */

/* Live memory of this process, but only its code: the stack is read from the copy. */
static bool read_code(const struct sf_reader *reader, void *ret, uint64_t addr, size_t size)
{
	const struct sf_region *region = sf_code_map_find(reader->arg, addr);

	if (!region || size > region->end - addr)
		return false;
	memcpy(ret, (const void *)(uintptr_t)addr, size);
	return true;
}

static void take_registers(const ucontext_t *context, struct sf_regs *ret)
{
	ret->pc = (uint64_t)context->uc_mcontext.gregs[REG_RIP];
	sf_reg_set(ret, sf_arch_host()->sp, (uint64_t)context->uc_mcontext.gregs[REG_RSP]);
	sf_reg_set(ret, sf_arch_host()->fp, (uint64_t)context->uc_mcontext.gregs[REG_RBP]);
}

/* In the handler of a fault: copies the stack, then lets the fault succeed. */
static __attribute__((noinline)) void take_still(int signal_number)
{
	ucontext_t context;
	uint64_t sp;
	(void)signal_number;

	getcontext(&context);
	take_registers(&context, &still.regs);
	sp = still.regs.r[sf_arch_host()->sp];
	still.memory.window_start = sp;
	still.memory.window_size = stack_top - sp;
	if (still.memory.window_size > sizeof(stack_copy))
		_exit(2);
	memcpy(stack_copy, (const void *)(uintptr_t)sp, still.memory.window_size);
	mprotect(guard_page, 4096, PROT_READ | PROT_WRITE);
}

/*
 * The volatile variable keeps compilers from making a loop of it, and, as it is written first, makes
 * every call build its frame: the last one, too, has the frame record that the table tells of.
 */
static __attribute__((noinline)) int recurse(int depth)
{
	volatile int below = depth;

	if (below == 0) {
		*(volatile uint8_t *)guard_page = 1;
		return 0;
	}
	below = recurse(depth - 1);
	return below + 1;
}

static void add_region(uint64_t start, uint64_t end)
{
	if (map->n_regions < MAX_REGIONS)
		map->regions[map->n_regions++] = (struct sf_region){ .start = start, .end = end };
}

static void read_maps(void)
{
	unsigned long long start, end;
	char line[512], flags[8];
	FILE *maps = fopen("/proc/self/maps", "re");

	while (maps && fgets(line, sizeof(line), maps)) {
		/* Not all of it is readable (the vsyscall page), but nothing returns there. */
		if (sscanf(line, "%llx-%llx %7s", &start, &end, flags) == 3 && flags[2] == 'x')
			add_region(start, end);
	}
	if (maps)
		fclose(maps);
}

/* One row for everything: the frame record is at fp, and the caller's sp is behind it. */
static bool give_table(struct sf_table *table)
{
	const struct sf_arch *arch = sf_arch_host();
	const uint64_t here = (uintptr_t)recurse;

	block.header = (struct sf_table_header){ .magic = SF_TABLE_MAGIC, .version = SF_TABLE_VERSION,
						 .elf_machine = arch->elf_machine, .n_rows = 1,
						 .n_rules = 1, .size = sizeof(block) };
	block.rules.cfa = (struct sf_rule){ .how = SF_HOW_REGISTER_PLUS, .reg = arch->fp, .value = 16 };
	block.rules.ra = (struct sf_rule){ .how = SF_HOW_AT_CFA, .value = -8 };
	for (unsigned i = 0; i < arch->n_saved; i++) {
		if (arch->saved[i] == arch->fp)
			block.rules.saved[i] = (struct sf_rule){ .how = SF_HOW_AT_CFA, .value = -16 };
	}
	for (size_t i = 0; i < map->n_regions; i++) {
		if (here >= map->regions[i].start && here < map->regions[i].end) {
			map->regions[i].bias = map->regions[i].start;
			map->regions[i].table = table;
		}
	}
	return sf_table_init(table, &block, sizeof(block));
}

static bool capture(void)
{
	struct sigaction action = { .sa_handler = take_still };
	const volatile int depth = DEPTH; /* a constant would get a copy of recurse() for itself */

	guard_page = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (guard_page == MAP_FAILED || sigaction(SIGSEGV, &action, NULL) < 0)
		return false;
	still.arch = sf_arch_host();
	still.map = map;
	still.memory.window = stack_copy;
	still.memory.read = read_code;
	still.memory.arg = map;
	return recurse(depth) == DEPTH;
}

/* How many of the frames that lie in recurse() were found by one of `vias`, a bit for each. */
static unsigned count_recursion(const struct sf_trace *trace, uint32_t vias)
{
	const uint64_t start = (uintptr_t)recurse;
	unsigned n = 0;

	for (uint32_t i = 0; i < trace->n_frames; i++)
		n += trace->frames[i].pc > start && trace->frames[i].pc < start + 256 &&
		     vias >> trace->frames[i].via & 1;
	return n;
}

#define RING 65536

static _Alignas(64) uint8_t ring_bytes[sizeof(struct sf_outbox_header) + RING];
static struct sf_frame frames[256];

static bool write_trace(struct sf_outbox_header *ring, const struct sf_trace *trace)
{
	const size_t size = trace->n_frames * sizeof(*trace->frames);
	void *record = sf_outbox_reserve(ring, size);

	if (!record)
		return false;
	memcpy(record, trace->frames, size);
	sf_outbox_commit(ring, record, size, 1, size);
	if (!sf_outbox_peek(ring))
		return false;
	sf_outbox_release(ring);
	return true;
}

static int walk_often(const char *name, uint32_t vias)
{
	struct sf_trace trace = { .frames = frames, .capacity = sizeof(frames) / sizeof(frames[0]) };
	unsigned n_failed = 0, n_signal;
	struct sf_outbox_header *ring = sf_outbox_init(ring_bytes, RING, 0);

	frozen = 1;
	for (unsigned i = 0; i < WALKS; i++) {
		sf_walk(&still, &trace);
		n_failed += !write_trace(ring, &trace);
	}
	frozen = 0;
	n_signal = count_recursion(&trace, 1U << SF_VIA_SIGNAL);
	printf("%s: %u frames, %u of %u in the recursion, %u interrupted, ended by %s\n", name,
	       trace.n_frames, count_recursion(&trace, vias), DEPTH, n_signal, sf_end_word(trace.end));
	return n_failed == 0 && n_signal == 1 && count_recursion(&trace, vias) == DEPTH ? 0 : 1;
}

/* Whether the replacements do abort: else this test could not fail. */
static bool is_caught(void (*forbidden)(void))
{
	const pid_t child = fork();
	int status;

	if (child == 0) {
		frozen = 1;
		forbidden();
		_exit(0);
	}
	return child > 0 && waitpid(child, &status, 0) == child && WIFSIGNALED(status) &&
	       WTERMSIG(status) == SIGABRT;
}

static void allocate(void)
{
	void *volatile p = malloc(1);
	(void)p;
}

static void lock(void)
{
	static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

	pthread_mutex_lock(&mutex);
}

int main(void)
{
	static struct sf_table table;
	int failed;

	stack_top = (uintptr_t)__builtin_frame_address(0) + 16;
	if (!is_caught(allocate) || !is_caught(lock)) {
		fprintf(stderr, "the allocator and the lock could not be replaced\n");
		return 1;
	}
	read_maps();
	if (!capture())
		return 1;
	failed = walk_often("no table", 1U << SF_VIA_CODE | 1U << SF_VIA_FRAME_POINTER);
	if (!give_table(&table))
		return 1;
	return failed | walk_often("rows", 1U << SF_VIA_ROWS);
}
