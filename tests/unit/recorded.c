/* SPDX-License-Identifier: Apache-2.0 */
/* Stills and tables made by hand, for tests. */
#include <stdlib.h>
#include <string.h>

#include "recorded.h"

static void check(bool ok)
{
	if (!ok)
		abort();
}

static uint8_t *find_memory(struct recorded *r, uint64_t addr, size_t size)
{
	for (unsigned i = 0; i < r->n_pieces; i++) {
		struct recorded_piece *piece = &r->pieces[i];

		if (addr >= piece->start && size <= piece->size &&
		    addr - piece->start <= piece->size - size)
			return piece->bytes + (addr - piece->start);
	}
	return NULL;
}

static bool read_piece(const struct sf_reader *reader, void *ret, uint64_t addr, size_t size)
{
	struct recorded *r = reader->arg;
	const uint8_t *bytes = find_memory(r, addr, size);

	r->n_reads++;
	if (bytes)
		memcpy(ret, bytes, size);
	return bytes;
}

void recorded_init(struct recorded *r, const struct sf_arch *arch)
{
	memset(r, 0, sizeof(*r));
	r->map = (struct sf_code_map *)r->map_bytes;
	r->still.arch = arch;
	r->still.map = r->map;
	r->still.memory.read = read_piece;
	r->still.memory.arg = r;
	r->trace.frames = r->frames;
	r->trace.capacity = RECORDED_FRAMES;
}

void recorded_memory(struct recorded *r, uint64_t start, uint64_t size)
{
	check(r->n_pieces < RECORDED_PIECES && size <= RECORDED_PIECE_SIZE);
	r->pieces[r->n_pieces].start = start;
	r->pieces[r->n_pieces++].size = size;
}

void recorded_bytes(struct recorded *r, uint64_t addr, const void *bytes, size_t size)
{
	uint8_t *memory = find_memory(r, addr, size);

	check(memory);
	memcpy(memory, bytes, size);
}

void recorded_put(struct recorded *r, uint64_t addr, uint64_t value)
{
	recorded_bytes(r, addr, &value, sizeof(value));
}

void recorded_put32(struct recorded *r, uint64_t addr, uint32_t value)
{
	recorded_bytes(r, addr, &value, sizeof(value));
}

void recorded_call(struct recorded *r, uint64_t behind, uint64_t target)
{
	recorded_bytes(r, behind - 5, &(uint8_t){ 0xe8 }, 1);
	recorded_put32(r, behind - 4, (uint32_t)(target - behind));
}

void recorded_window(struct recorded *r, uint64_t start, uint64_t size, uint64_t stack_end)
{
	r->still.memory.window = find_memory(r, start, size);
	check(r->still.memory.window);
	r->still.memory.window_start = start;
	r->still.memory.window_size = size;
	r->still.memory.stack_end = stack_end;
}

void recorded_region(struct recorded *r, uint64_t start, uint64_t end,
		     const struct sf_table *table, uint32_t image)
{
	check(r->map->n_regions < RECORDED_REGIONS);
	r->map->regions[r->map->n_regions++] = (struct sf_region){
		.start = start, .end = end, .bias = start, .table = table, .image = image,
	};
	r->map->pops_return |= table && table->header->flags & SF_TABLE_POPS_RETURN;
}

void recorded_reg(struct recorded *r, unsigned reg, uint64_t value)
{
	sf_reg_set(&r->still.regs, reg, value);
}

enum sf_end recorded_walk(struct recorded *r)
{
	return sf_walk(&r->still, &r->trace);
}

void table_start(struct table_builder *b, const struct sf_arch *arch)
{
	memset(b, 0, sizeof(*b));
	b->elf_machine = arch->elf_machine;
}

void table_row(struct table_builder *b, uint32_t offset, const struct sf_rules *rules)
{
	static const struct sf_rules gap = { .flags = SF_RULES_NONE };

	check(b->n_rows < 32);
	b->rules[b->n_rules] = rules ? *rules : gap;
	b->rows[b->n_rows++] = (struct sf_row){ offset, b->n_rules++ };
}

struct sf_rule table_expression(struct table_builder *b, enum sf_how how, const uint8_t *bytes,
				uint16_t size)
{
	const struct sf_rule rule = { .how = how, .size = size, .value = (int32_t)b->blob_size };

	check(b->blob_size + size <= sizeof(b->blob));
	memcpy(b->blob + b->blob_size, bytes, size);
	b->blob_size += size;
	return rule;
}

static size_t append(struct table_builder *b, size_t at, const void *bytes, size_t size)
{
	check(at + size <= sizeof(b->block));
	memcpy(b->block + at, bytes, size);
	return at + size;
}

const struct sf_table *table_finish(struct table_builder *b)
{
	struct sf_table_header header = {
		.magic = SF_TABLE_MAGIC,
		.version = SF_TABLE_VERSION,
		.elf_machine = b->elf_machine,
		.flags = b->flags,
		.n_rows = b->n_rows,
		.n_rules = b->n_rules,
		.blob_size = b->blob_size,
	};
	size_t at = append(b, sizeof(header), b->rows, b->n_rows * sizeof(b->rows[0]));

	at = append(b, at, b->rules, b->n_rules * sizeof(b->rules[0]));
	at = append(b, at, b->blob, b->blob_size);
	header.size = at;
	append(b, 0, &header, sizeof(header));
	check(sf_table_init(&b->table, b->block, at));
	return &b->table;
}

struct sf_rules simple_rules(unsigned reg, int32_t cfa_offset, int32_t ra_offset)
{
	return (struct sf_rules){
		.cfa = { .how = SF_HOW_REGISTER_PLUS, .reg = (uint8_t)reg, .value = cfa_offset },
		.ra = { .how = SF_HOW_AT_CFA, .value = ra_offset },
	};
}
