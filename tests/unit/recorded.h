/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stills written by hand: pieces of memory, a code map, unwind tables and registers, so that the
 * walker is tested without a process, for any architecture, on any machine.
 *
 *	recorded_init(&r, &sf_arch_x86_64);
 *	recorded_memory(&r, STACK, 4096);
 *	recorded_put(&r, STACK + 8, return_address);
 *	recorded_region(&r, CODE, CODE + 4096, table, 1);
 *	recorded_walk(&r);
 *
 * What was not made with recorded_memory cannot be read. Mistakes in a test abort it.
 */
#ifndef SF_TESTS_RECORDED_H
#define SF_TESTS_RECORDED_H

#include <stddef.h>
#include <stdint.h>

#include "frozen/unwind/walk.h"

#define RECORDED_PIECES 8
#define RECORDED_PIECE_SIZE 8192
#define RECORDED_REGIONS 8
#define RECORDED_FRAMES 64

struct recorded_piece {
	uint64_t start, size;
	_Alignas(8) uint8_t bytes[RECORDED_PIECE_SIZE];
};

struct recorded {
	struct sf_still still;
	struct sf_trace trace;
	struct sf_frame frames[RECORDED_FRAMES];
	struct sf_code_map *map;
	_Alignas(8) uint8_t map_bytes[sizeof(struct sf_code_map) +
				      RECORDED_REGIONS * sizeof(struct sf_region)];
	unsigned n_pieces;
	struct recorded_piece pieces[RECORDED_PIECES];
	unsigned n_reads;       /* that went to the reader's function */
};

void recorded_init(struct recorded *r, const struct sf_arch *arch);

/* Memory that can be read, zeros at first. */
void recorded_memory(struct recorded *r, uint64_t start, uint64_t size);
void recorded_bytes(struct recorded *r, uint64_t addr, const void *bytes, size_t size);
void recorded_put(struct recorded *r, uint64_t addr, uint64_t value);
void recorded_put32(struct recorded *r, uint64_t addr, uint32_t value);
/* A direct call of x86-64 with this return address. */
void recorded_call(struct recorded *r, uint64_t behind, uint64_t target);

/* Makes the first `size` bytes of the piece at `start` the window; see sf_reader.stack_end. */
void recorded_window(struct recorded *r, uint64_t start, uint64_t size, uint64_t stack_end);

/* In ascending order; the bias is `start`, so addresses in tables count from there. */
void recorded_region(struct recorded *r, uint64_t start, uint64_t end,
		     const struct sf_table *table, uint32_t image);

void recorded_reg(struct recorded *r, unsigned reg, uint64_t value);
enum sf_end recorded_walk(struct recorded *r);

/* A table under construction; everything in it is also reachable for spoiling it. */
struct table_builder {
	uint16_t elf_machine, flags;
	unsigned n_rows, n_rules, blob_size;
	struct sf_row rows[32];
	struct sf_rules rules[32];
	uint8_t blob[256];
	_Alignas(8) uint8_t block[8192];
	struct sf_table table;
};

void table_start(struct table_builder *b, const struct sf_arch *arch);
/* From `offset` on `rules` hold; NULL makes a gap. */
void table_row(struct table_builder *b, uint32_t offset, const struct sf_rules *rules);
/* A rule with these bytes as its expression. */
struct sf_rule table_expression(struct table_builder *b, enum sf_how how, const uint8_t *bytes,
				uint16_t size);
/* The finished table, in the builder; the size of its block is in the header. */
const struct sf_table *table_finish(struct table_builder *b);

/* CFA = reg + cfa_offset, return address at CFA + ra_offset, all else unchanged. */
struct sf_rules simple_rules(unsigned reg, int32_t cfa_offset, int32_t ra_offset);

#endif
