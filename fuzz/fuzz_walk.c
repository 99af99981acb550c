/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A walk with everything hostile: registers, stack, code and an unwind table. An input is
 *
 *	1 byte    bit 0: the architecture; bit 1: only the first half of the stack was copied;
 *	          bit 2: only sp is known, of a thread asleep
 *	1 byte    size of the stack in units of 16 bytes
 *	          pc and the registers, 8 bytes each, as many as there are
 *	          the stack
 *	          the rest: the table's block, and at the same time the bytes of the code
 *
 * What is missing is zero. The header's sizes are mended where they are not those of the
 * block, as the fuzzer would hardly find them; sf_table_init also sees the block as it came.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "frozen/unwind/walk.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define STACK 0x10000
#define CODE 0x40000
#define CODE_SIZE 0x10000
#define DEPTH 64

struct input {
	const uint8_t *bytes;
	size_t size;
};

static uint8_t code[8192];
static uint8_t stack[256 * 16];

static void take(struct input *input, void *ret, size_t size)
{
	const size_t n = size < input->size ? size : input->size;

	memset(ret, 0, size);
	memcpy(ret, input->bytes, n);
	input->bytes += n;
	input->size -= n;
}

static bool read_code(const struct sf_reader *reader, void *ret, uint64_t addr, size_t size)
{
	(void)reader;
	if (addr < CODE || addr - CODE > sizeof(code) || size > sizeof(code) - (addr - CODE))
		return false;
	memcpy(ret, code + (addr - CODE), size);
	return true;
}

static uint32_t at_most(uint32_t n, size_t bytes, size_t item_size)
{
	return n < bytes / item_size ? n : (uint32_t)(bytes / item_size);
}

static bool mend_table(struct sf_table *ret, void *block, size_t size)
{
	struct sf_table_header *header = block;
	size_t left;

	sf_table_init(ret, block, size);
	if (size < sizeof(*header))
		return false;
	left = size - sizeof(*header);
	header->magic = SF_TABLE_MAGIC;
	header->version = SF_TABLE_VERSION;
	header->size = size;
	header->base &= 0xff;
	header->n_rows = at_most(header->n_rows, left, sizeof(struct sf_row));
	left -= header->n_rows * sizeof(struct sf_row);
	header->n_rules = at_most(header->n_rules, left, sizeof(struct sf_rules));
	left -= header->n_rules * sizeof(struct sf_rules);
	header->blob_size = at_most(header->blob_size, left, 1);
	return sf_table_init(ret, block, size);
}

static void fill_still(struct sf_still *still, struct input *input)
{
	uint8_t flags, stack_units;
	size_t stack_size;

	take(input, &flags, 1);
	take(input, &stack_units, 1);
	stack_size = stack_units * 16u;
	still->arch = flags & 1 ? &sf_arch_aarch64 : &sf_arch_x86_64;
	take(input, &still->regs.pc, 8);
	for (unsigned i = 0; i < still->arch->n_regs; i++)
		take(input, &still->regs.r[i], 8);
	still->regs.known = flags & 4 ? UINT64_C(1) << still->arch->sp :
					(UINT64_C(1) << still->arch->n_regs) - 1;
	take(input, stack, stack_size);
	still->memory = (struct sf_reader){
		.window = stack,
		.window_start = STACK,
		.window_size = flags & 2 ? stack_size / 2 : stack_size,
		.stack_end = STACK + stack_size,
		.read = read_code,
	};
}

static void fill_map(struct sf_code_map *map, const struct sf_table *table)
{
	map->n_regions = 2;
	map->regions[0] = (struct sf_region){ .start = CODE, .end = CODE + CODE_SIZE, .bias = CODE,
					      .table = table, .image = 1 };
	map->regions[1] = (struct sf_region){ .start = CODE + CODE_SIZE, .end = CODE + 2 * CODE_SIZE };
}

/* Of frames and bytes that are fewer than walks have. */
static struct sf_tail_walk tail_walk(void)
{
	static struct sf_frame frames[DEPTH / 2];
	static struct sf_tail_regs kept[DEPTH / 2], regs[DEPTH];
	static uint8_t bytes[sizeof(stack) / 2];
	static struct sf_tail tail;

	tail.frames = frames;
	tail.regs = kept;
	tail.bytes = bytes;
	tail.capacity = DEPTH / 2;
	tail.size = sizeof(bytes);
	return (struct sf_tail_walk){ .tail = &tail, .regs = regs, .capacity = DEPTH };
}

static void check_trace(const struct sf_trace *trace, enum sf_end end)
{
	if (end != trace->end || end >= SF_N_ENDS || trace->n_frames > trace->capacity)
		abort();
	for (uint32_t i = 0; i < trace->n_frames; i++) {
		if (trace->frames[i].via >= SF_N_VIAS || trace->frames[i].image > 1)
			abort();
	}
}

/* With the tail of an earlier walk it is the same trace. */
static void check_tail(const struct sf_still *still, const struct sf_trace *trace)
{
	static struct sf_frame frames[DEPTH];
	struct sf_trace again = { .frames = frames, .capacity = DEPTH };
	struct sf_tail_walk walk = tail_walk();

	sf_walk_with_tail(still, &walk, &again);
	if (again.end != trace->end || again.n_frames != trace->n_frames || again.by_zero != trace->by_zero ||
	    memcmp(again.frames, trace->frames, again.n_frames * sizeof(*frames)) != 0)
		abort();
}

/* The stacks and registers of later samples of a thread. */
static void change(struct sf_still *still, struct input *input)
{
	uint8_t change[3] = { 0 };

	take(input, change, sizeof(change));
	stack[(change[0] | change[1] << 8) % sizeof(stack)] ^= change[2];
	if (change[1] & 0x80)
		still->regs.r[change[0] % still->arch->n_regs] += change[2] & 0x38;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static _Alignas(8) uint8_t map[sizeof(struct sf_code_map) + 2 * sizeof(struct sf_region)];
	static struct sf_frame frames[DEPTH];
	struct sf_trace trace = { .frames = frames, .capacity = DEPTH };
	struct input input = { data, size }, changes = { data, size };
	struct sf_still still = { .map = (struct sf_code_map *)map };
	struct sf_table table;
	size_t block_size;
	void *block;

	fill_still(&still, &input);
	block_size = input.size < sizeof(code) ? input.size : sizeof(code);
	block = malloc(block_size); /* of its own, so that a read behind its end is seen */
	if (!block && block_size)
		return 0;
	take(&input, block, block_size);
	memset(code, 0, sizeof(code));
	memcpy(code, block, block_size);
	fill_map((struct sf_code_map *)map, mend_table(&table, block, block_size) ? &table : NULL);
	((struct sf_code_map *)map)->serial++;
	for (unsigned i = 0; i < 4; i++) {
		check_trace(&trace, sf_walk(&still, &trace));
		check_tail(&still, &trace);
		change(&still, &changes);
	}
	free(block);
	return 0;
}
