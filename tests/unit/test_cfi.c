/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sections of call frame information, written here byte by byte, and the rows that must come out of
 * them: each instruction, each encoding, both formats, both section kinds, and bytes that
 * make no sense.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <dwarf.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/error.h"
#include "frozen/unwind/table.h"
#include "unwind/cfi.h"
#include "unwind/rows.h"

#define TEXT 0x400000u        /* code starts here */
#define SECTION 0x10000u      /* the section's own address */
#define CODE_SIZE 0x100000u

enum { RAX = 0, RBX = 3, RBP = 6, RSP = 7, R10 = 10, R12 = 12, RIP = 16, XMM0 = 17 };

/* Bytes in the making. */
struct builder {
	uint8_t bytes[8192];
	size_t n;
	bool eh, is_64;
	uint64_t cie;         /* offset of the last CIE */
	size_t length_at;     /* of the open entry */
};

static void put(struct builder *b, uint64_t value, size_t size)
{
	assert_true(b->n + size <= sizeof(b->bytes));
	memcpy(b->bytes + b->n, &value, size);
	b->n += size;
}

static void put_uleb(struct builder *b, uint64_t value)
{
	for (; value >= 0x80; value >>= 7)
		put(b, value | 0x80, 1);
	put(b, value, 1);
}

static void put_sleb(struct builder *b, int64_t value)
{
	for (; value < -64 || value >= 64; value >>= 7)
		put(b, (uint64_t)value | 0x80, 1);
	put(b, (uint64_t)value & 0x7f, 1);
}

static void put_string(struct builder *b, const char *string)
{
	do {
		put(b, (uint8_t)*string, 1);
	} while (*string++);
}

static void open_entry(struct builder *b)
{
	if (b->is_64)
		put(b, 0xffffffff, 4);
	b->length_at = b->n;
	put(b, 0, b->is_64 ? 8 : 4);
}

static void close_entry(struct builder *b)
{
	size_t size = b->is_64 ? 8 : 4;
	uint64_t length;

	while (b->n % 8)
		put(b, DW_CFA_nop, 1);
	length = b->n - b->length_at - size;
	memcpy(b->bytes + b->length_at, &length, size);
}

static size_t id_size(const struct builder *b)
{
	return b->is_64 && !b->eh ? 8 : 4;
}

/* A CIE up to its instructions. `data` are the augmentation's bytes. */
static void open_cie(struct builder *b, uint8_t version, const char *augmentation,
		     const uint8_t *data, size_t data_size)
{
	b->cie = b->n;
	open_entry(b);
	put(b, b->eh ? 0 : UINT64_MAX, id_size(b));
	put(b, version, 1);
	put_string(b, augmentation);
	if (strncmp(augmentation, "eh", 2) == 0)
		put(b, 0x1234, 8);
	if (version >= 4)
		put(b, 8, 2); /* address size 8, no segment selector */
	put_uleb(b, 1);
	put_sleb(b, -8);
	if (version == 1)
		put(b, RIP, 1);
	else
		put_uleb(b, RIP);
	if (augmentation[0] == 'z')
		put_uleb(b, data_size);
	for (size_t i = 0; i < data_size; i++)
		put(b, data[i], 1);
}

/* The rule with which compilers start x86-64 functions: CFA rsp + 8, return address at CFA - 8. */
static void put_initial(struct builder *b)
{
	put(b, DW_CFA_def_cfa, 1);
	put_uleb(b, RSP);
	put_uleb(b, 8);
	put(b, DW_CFA_offset | RIP, 1);
	put_uleb(b, 1);
}

static void put_cie(struct builder *b)
{
	open_cie(b, 1, "", NULL, 0);
	put_initial(b);
	close_entry(b);
}

static void open_fde_id(struct builder *b)
{
	open_entry(b);
	put(b, b->eh ? b->n - b->cie : b->cie, id_size(b));
}

/* An FDE with plain addresses, up to its instructions. */
static void open_fde(struct builder *b, uint64_t start, uint64_t size)
{
	open_fde_id(b);
	put(b, start, 8);
	put(b, size, 8);
}

/* The table of a section; `block` is to be freed. */
struct made {
	struct sf_table table;
	void *block;
};

static struct made make_on(const struct sf_cfi *cfi, const struct sf_arch *arch)
{
	struct sf_rows *rows = sf_rows_create(TEXT, TEXT + CODE_SIZE);
	const struct sf_table_header header = { .elf_machine = arch->elf_machine };
	struct made made;
	size_t size;

	assert_non_null(rows);
	assert_true(sf_cfi_read(cfi, arch, rows, NULL));
	assert_true(sf_rows_pack(rows, &header, &made.block, &size, NULL));
	assert_true(sf_table_init(&made.table, made.block, size));
	sf_rows_destroy(rows);
	return made;
}

/* A copy of exactly the bytes, so that a sanitizer sees a read behind them. */
static struct made make(const struct builder *b)
{
	uint8_t *copy = malloc(b->n);
	struct sf_cfi cfi = {
		.bytes = copy, .size = b->n, .address = SECTION, .eh = b->eh,
		.text = TEXT, .data = TEXT + 0x1000,
	};
	struct made made;

	assert_non_null(copy);
	memcpy(copy, b->bytes, b->n);
	made = make_on(&cfi, &sf_arch_x86_64);
	free(copy);
	return made;
}

static const struct sf_rules *rules_at(const struct made *made, uint64_t offset)
{
	return sf_table_find(&made->table, TEXT + offset);
}

static void assert_rule(struct sf_rule rule, enum sf_how how, unsigned reg, int value)
{
	assert_int_equal(rule.how, how);
	assert_int_equal(rule.reg, reg);
	assert_int_equal(rule.value, value);
}

static struct sf_rule saved(const struct sf_rules *rules, unsigned reg)
{
	for (unsigned i = 0; i < sf_arch_x86_64.n_saved; i++) {
		if (sf_arch_x86_64.saved[i] == reg)
			return rules->saved[i];
	}
	fail();
	return (struct sf_rule){ 0 };
}

/* A section with one function whose instructions are these bytes; its rows. */
static struct made run(const uint8_t *code, size_t size)
{
	struct builder b = { .eh = true };

	put_cie(&b);
	open_fde(&b, TEXT, 0x10000);
	for (size_t i = 0; i < size; i++)
		put(&b, code[i], 1);
	close_entry(&b);
	return make(&b);
}

#define RUN(...) run((const uint8_t[]){ __VA_ARGS__ }, sizeof((const uint8_t[]){ __VA_ARGS__ }))

/* The rules that these instructions lead to, from the function's start. */
#define RULES_AFTER(made, ...)                                                                     \
	struct made made = RUN(__VA_ARGS__);                                                       \
	const struct sf_rules *rules = rules_at(&made, 0);                                         \
	assert_non_null(rules)

static void both_formats_both_sections_all_versions(void **state)
{
	static const uint8_t versions[] = { 1, 3, 4, 5 };
	(void)state;

	for (unsigned i = 0; i < 16; i++) {
		struct builder b = { .eh = i & 1, .is_64 = i & 2 };
		struct made made;
		const struct sf_rules *rules;

		open_cie(&b, versions[i / 4], "", NULL, 0);
		put_initial(&b);
		close_entry(&b);
		open_fde(&b, TEXT + 0x100, 0x40);
		put(&b, DW_CFA_advance_loc | 4, 1);
		put(&b, DW_CFA_def_cfa_offset, 1);
		put(&b, 16, 1);
		close_entry(&b);
		made = make(&b);
		assert_null(rules_at(&made, 0xff));
		rules = rules_at(&made, 0x100);
		assert_non_null(rules);
		assert_rule(rules->cfa, SF_HOW_REGISTER_PLUS, RSP, 8);
		assert_rule(rules->ra, SF_HOW_AT_CFA, 0, -8);
		assert_rule(saved(rules, RBP), SF_HOW_SAME, 0, 0);
		assert_ptr_equal(rules_at(&made, 0x103), rules);
		assert_int_equal(rules_at(&made, 0x104)->cfa.value, 16);
		assert_int_equal(rules_at(&made, 0x13f)->cfa.value, 16);
		assert_null(rules_at(&made, 0x140));
		munmap(made.block, made.table.header->size);
	}
}

static void advances(void **state)
{
	struct made made = RUN(DW_CFA_advance_loc1, 0x80, DW_CFA_def_cfa_offset, 1,
			       DW_CFA_advance_loc2, 0x00, 0x01, DW_CFA_def_cfa_offset, 2,
			       DW_CFA_advance_loc4, 0x00, 0x10, 0, 0, DW_CFA_def_cfa_offset, 3,
			       DW_CFA_MIPS_advance_loc8, 0x00, 0x10, 0, 0, 0, 0, 0, 0,
			       DW_CFA_def_cfa_offset, 4,
			       DW_CFA_set_loc, 0x00, 0x80, 0x40, 0, 0, 0, 0, 0,
			       DW_CFA_def_cfa_offset, 5);
	(void)state;

	assert_int_equal(rules_at(&made, 0x7f)->cfa.value, 8);
	assert_int_equal(rules_at(&made, 0x80)->cfa.value, 1);
	assert_int_equal(rules_at(&made, 0x17f)->cfa.value, 1);
	assert_int_equal(rules_at(&made, 0x180)->cfa.value, 2);
	assert_int_equal(rules_at(&made, 0x1180)->cfa.value, 3);
	assert_int_equal(rules_at(&made, 0x2180)->cfa.value, 4);
	assert_int_equal(rules_at(&made, 0x7fff)->cfa.value, 4);
	assert_int_equal(rules_at(&made, 0x8000)->cfa.value, 5);
	assert_int_equal(made.table.header->n_rows, 7);
	munmap(made.block, made.table.header->size);
}

static void code_behind_the_end_says_nothing(void **state)
{
	struct made made = RUN(DW_CFA_advance_loc4, 0, 0, 2, 0, DW_CFA_def_cfa_offset, 99,
			       DW_CFA_low_user, DW_CFA_restore_state);
	(void)state;

	assert_int_equal(made.table.header->n_rows, 2);
	assert_int_equal(rules_at(&made, 0xffff)->cfa.value, 8);
	munmap(made.block, made.table.header->size);
}

static void register_rules(void **state)
{
	(void)state;
	RULES_AFTER(made, DW_CFA_offset | RBX, 2,
		    DW_CFA_offset_extended, RBP, 3,
		    DW_CFA_offset_extended_sf, R12, 0x7f /* -1 */,
		    DW_CFA_val_offset, 13, 4,
		    DW_CFA_val_offset_sf, 14, 0x7e /* -2 */,
		    DW_CFA_register, 15, R10);

	assert_rule(saved(rules, RBX), SF_HOW_AT_CFA, 0, -16);
	assert_rule(saved(rules, RBP), SF_HOW_AT_CFA, 0, -24);
	assert_rule(saved(rules, R12), SF_HOW_AT_CFA, 0, 8);
	assert_rule(saved(rules, 13), SF_HOW_CFA_PLUS, 0, -32);
	assert_rule(saved(rules, 14), SF_HOW_CFA_PLUS, 0, 16);
	assert_rule(saved(rules, 15), SF_HOW_REGISTER, R10, 0);
	munmap(made.block, made.table.header->size);
}

static void more_register_rules(void **state)
{
	(void)state;
	RULES_AFTER(made, DW_CFA_undefined, RIP,
		    DW_CFA_offset | RBX, 2, DW_CFA_same_value, RBX,
		    DW_CFA_GNU_negative_offset_extended, RBP, 2,
		    DW_CFA_GNU_args_size, 0x20,
		    DW_CFA_register, R12, XMM0 + 50, DW_CFA_offset | RAX, 5,
		    DW_CFA_expression, XMM0, 1, DW_OP_lit0);

	assert_rule(rules->ra, SF_HOW_UNDEFINED, 0, 0);
	assert_rule(saved(rules, RBX), SF_HOW_SAME, 0, 0);
	assert_rule(saved(rules, RBP), SF_HOW_AT_CFA, 0, 16);
	assert_rule(saved(rules, R12), SF_HOW_UNDEFINED, 0, 0);
	munmap(made.block, made.table.header->size);
}

/* As the end of glibc's longjmp and setcontext: the CFA is where registers are saved, and the caller's sp is elsewhere. */
static void an_sp_that_is_not_the_cfa(void **state)
{
	(void)state;
	RULES_AFTER(made, DW_CFA_def_cfa, 5, 16, DW_CFA_register, RSP, 8, DW_CFA_register, RBP, 9, DW_CFA_register, RIP, 1,
		    DW_CFA_offset_extended_sf, RBX, 0x7c /* 32 */, DW_CFA_val_offset_sf, R12, 0x7f /* 8 */,
		    DW_CFA_advance_loc | 8, DW_CFA_offset_extended_sf, RSP, 0x6c /* 160 */, DW_CFA_offset_extended_sf, RIP, 0x6b /* 168 */,
		    DW_CFA_advance_loc | 8, DW_CFA_restore_extended, RSP, DW_CFA_advance_loc | 8, DW_CFA_val_offset, RSP, 0);
	const uint8_t *blob = made.table.blob;

	assert_rule(rules->cfa, SF_HOW_REGISTER, 8, 0);
	assert_rule(rules->ra, SF_HOW_REGISTER, 1, 0);
	assert_rule(saved(rules, RBP), SF_HOW_REGISTER, 9, 0);
	assert_rule(saved(rules, R12), SF_HOW_REGISTER_PLUS, 5, 24);
	assert_int_equal(saved(rules, RBX).how, SF_HOW_AT_EXPRESSION);
	assert_int_equal(saved(rules, RBX).size, 2);
	assert_memory_equal(blob + saved(rules, RBX).value, ((const uint8_t[]){ DW_OP_breg5, 48 }), 2);
	rules = rules_at(&made, 8);
	assert_int_equal(rules->cfa.how, SF_HOW_AT_EXPRESSION);
	assert_memory_equal(blob + rules->cfa.value, ((const uint8_t[]){ DW_OP_breg5, 0xb0, 0x01 }), rules->cfa.size);
	assert_int_equal(rules->ra.how, SF_HOW_AT_EXPRESSION);
	assert_memory_equal(blob + rules->ra.value, ((const uint8_t[]){ DW_OP_breg5, 0xb8, 0x01 }), rules->ra.size);
	for (unsigned offset = 16; offset <= 24; offset += 8) {
		assert_rule(rules_at(&made, offset)->cfa, SF_HOW_REGISTER_PLUS, 5, 16);
		assert_rule(saved(rules_at(&made, offset), RBX), SF_HOW_AT_CFA, 0, 32);
	}
	munmap(made.block, made.table.header->size);
}

/* As GHC's StgRun: the CFA is its sp, and the caller's sp an expression. */
static void an_sp_above_the_cfa(void **state)
{
	(void)state;
	RULES_AFTER(made, DW_CFA_def_cfa, RSP, 0, DW_CFA_offset_extended_sf, RBX, 0x78 /* 64 */, DW_CFA_offset_extended_sf, RIP, 0x70 /* 128 */,
		    DW_CFA_val_expression, RSP, 3, DW_OP_breg7, 0x88, 0x01);
	const uint8_t *blob = made.table.blob;

	assert_int_equal(rules->cfa.how, SF_HOW_EXPRESSION);
	assert_memory_equal(blob + rules->cfa.value, ((const uint8_t[]){ DW_OP_breg7, 0x88, 0x01 }), 3);
	assert_int_equal(rules->ra.how, SF_HOW_AT_EXPRESSION);
	assert_memory_equal(blob + rules->ra.value, ((const uint8_t[]){ DW_OP_breg7, 0x80, 0x01 }), 3);
	assert_int_equal(saved(rules, RBX).how, SF_HOW_AT_EXPRESSION);
	munmap(made.block, made.table.header->size);
}

static void restores(void **state)
{
	struct made made = RUN(DW_CFA_offset | RBX, 2, DW_CFA_offset | RBP, 3,
			       DW_CFA_undefined, RIP,
			       DW_CFA_advance_loc | 1, DW_CFA_restore | RBX,
			       DW_CFA_advance_loc | 1, DW_CFA_restore_extended, RBP,
			       DW_CFA_restore_extended, RIP);
	(void)state;

	assert_rule(saved(rules_at(&made, 0), RBX), SF_HOW_AT_CFA, 0, -16);
	assert_rule(saved(rules_at(&made, 1), RBX), SF_HOW_SAME, 0, 0);
	assert_rule(saved(rules_at(&made, 1), RBP), SF_HOW_AT_CFA, 0, -24);
	assert_rule(saved(rules_at(&made, 2), RBP), SF_HOW_SAME, 0, 0);
	assert_rule(rules_at(&made, 1)->ra, SF_HOW_UNDEFINED, 0, 0);
	assert_rule(rules_at(&made, 2)->ra, SF_HOW_AT_CFA, 0, -8);
	munmap(made.block, made.table.header->size);
}

static void remembered_states_nest(void **state)
{
	struct made made = RUN(DW_CFA_remember_state, DW_CFA_advance_loc | 1,
			       DW_CFA_def_cfa_offset, 16, DW_CFA_offset | RBX, 2,
			       DW_CFA_remember_state, DW_CFA_advance_loc | 1,
			       DW_CFA_def_cfa, RBP, 24, DW_CFA_advance_loc | 1,
			       DW_CFA_restore_state, DW_CFA_advance_loc | 1, DW_CFA_restore_state);
	(void)state;

	assert_rule(rules_at(&made, 0)->cfa, SF_HOW_REGISTER_PLUS, RSP, 8);
	assert_rule(rules_at(&made, 1)->cfa, SF_HOW_REGISTER_PLUS, RSP, 16);
	assert_rule(rules_at(&made, 2)->cfa, SF_HOW_REGISTER_PLUS, RBP, 24);
	assert_ptr_equal(rules_at(&made, 3), rules_at(&made, 1));
	assert_ptr_equal(rules_at(&made, 4), rules_at(&made, 0));
	munmap(made.block, made.table.header->size);
}

/* As behind the pop of a return address; and by another register than sp, of which nothing is popped. */
static void a_return_address_below_sp_is_noted(void **state)
{
	struct made popped = RUN(DW_CFA_advance_loc | 1, DW_CFA_def_cfa_offset, 0), at_sp = RUN(DW_CFA_advance_loc | 1, DW_CFA_def_cfa_offset, 8);
	struct made by_rbp = RUN(DW_CFA_advance_loc | 1, DW_CFA_def_cfa, RBP, 0);
	(void)state;

	assert_int_equal(popped.table.header->flags, SF_TABLE_POPS_RETURN);
	assert_int_equal(at_sp.table.header->flags, 0);
	assert_int_equal(by_rbp.table.header->flags, 0);
	munmap(popped.block, popped.table.header->size);
	munmap(at_sp.block, at_sp.table.header->size);
	munmap(by_rbp.block, by_rbp.table.header->size);
}

/* rax is kept by functions that can leave for a handler only. */
static void a_kept_result_is_noted(void **state)
{
	struct made keeps = RUN(DW_CFA_offset | 0, 3, DW_CFA_advance_loc | 1, DW_CFA_def_cfa_offset, 16);
	struct made other = RUN(DW_CFA_offset | RBX, 3, DW_CFA_advance_loc | 1, DW_CFA_same_value, 0);
	(void)state;

	assert_int_equal(rules_at(&keeps, 1)->flags, SF_RULES_LEAVES);
	assert_int_equal(rules_at(&other, 1)->flags, 0);
	munmap(keeps.block, keeps.table.header->size);
	munmap(other.block, other.table.header->size);
}

static void frame_addresses(void **state)
{
	struct made made = RUN(DW_CFA_def_cfa_sf, RBP, 0x7e /* -2 */, DW_CFA_advance_loc | 1,
			       DW_CFA_def_cfa_register, RBX, DW_CFA_advance_loc | 1,
			       DW_CFA_def_cfa_offset_sf, 0x7d /* -3 */, DW_CFA_advance_loc | 1,
			       DW_CFA_def_cfa_expression, 2, DW_OP_breg0 + R10, 0,
			       DW_CFA_advance_loc | 1, DW_CFA_def_cfa_register, RBP);
	const struct sf_rules *rules;
	(void)state;

	assert_rule(rules_at(&made, 0)->cfa, SF_HOW_REGISTER_PLUS, RBP, 16);
	assert_rule(rules_at(&made, 1)->cfa, SF_HOW_REGISTER_PLUS, RBX, 16);
	assert_rule(rules_at(&made, 2)->cfa, SF_HOW_REGISTER_PLUS, RBX, 24);
	rules = rules_at(&made, 3);
	assert_int_equal(rules->cfa.how, SF_HOW_EXPRESSION);
	assert_int_equal(rules->cfa.size, 2);
	assert_int_equal(made.table.blob[rules->cfa.value], DW_OP_breg0 + R10);
	assert_rule(rules_at(&made, 4)->cfa, SF_HOW_REGISTER_PLUS, RBP, 24);
	munmap(made.block, made.table.header->size);
}

static void expressions(void **state)
{
	(void)state;
	RULES_AFTER(made, DW_CFA_expression, RBX, 2, DW_OP_breg7, 0x28,
		    DW_CFA_val_expression, RBP, 2, DW_OP_breg7, 0x28,
		    DW_CFA_val_expression, RIP, 1, DW_OP_deref,
		    DW_CFA_expression, R12, 0);

	assert_int_equal(saved(rules, RBX).how, SF_HOW_AT_EXPRESSION);
	assert_int_equal(saved(rules, RBX).size, 2);
	assert_int_equal(saved(rules, RBP).how, SF_HOW_EXPRESSION);
	assert_int_equal(saved(rules, RBP).value, saved(rules, RBX).value);
	assert_int_equal(rules->ra.how, SF_HOW_EXPRESSION);
	assert_int_equal(made.table.blob[rules->ra.value], DW_OP_deref);
	assert_int_equal(saved(rules, R12).size, 0);
	assert_int_equal(made.table.header->blob_size, 3);
	munmap(made.block, made.table.header->size);
}

/* One bad function between two good ones costs itself only. */
static void assert_bad(const uint8_t *code, size_t size)
{
	struct builder b = { .eh = true };
	struct made made;

	put_cie(&b);
	open_fde(&b, TEXT, 0x10);
	close_entry(&b);
	open_fde(&b, TEXT + 0x10, 0x10);
	put(&b, DW_CFA_advance_loc | 1, 1);
	for (size_t i = 0; i < size; i++)
		put(&b, code[i], 1);
	close_entry(&b);
	open_fde(&b, TEXT + 0x20, 0x10);
	close_entry(&b);
	made = make(&b);
	assert_non_null(rules_at(&made, 0xf));
	for (unsigned i = 0x10; i < 0x20; i++)
		assert_null(rules_at(&made, i));
	assert_non_null(rules_at(&made, 0x20));
	munmap(made.block, made.table.header->size);
}

#define ASSERT_BAD(...)                                                                            \
	assert_bad((const uint8_t[]){ __VA_ARGS__ }, sizeof((const uint8_t[]){ __VA_ARGS__ }))

static void bad_instructions(void **state)
{
	(void)state;
	ASSERT_BAD(DW_CFA_restore_state);
	ASSERT_BAD(DW_CFA_low_user);
	ASSERT_BAD(0x17);                                   /* not assigned */
	ASSERT_BAD(DW_CFA_AARCH64_negate_ra_state);         /* not on this machine */
	ASSERT_BAD(DW_CFA_def_cfa, 40, 8);                  /* no such register */
	ASSERT_BAD(DW_CFA_offset | RBX, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1);
	ASSERT_BAD(DW_CFA_def_cfa_expression, 0x7f, DW_OP_lit0);          /* too short */
	ASSERT_BAD(DW_CFA_expression, RBX, 0xff, 0xff, 0xff, 0xff, 0x0f);
	ASSERT_BAD(DW_CFA_set_loc, 0, 0, 0x40, 0, 0, 0, 0, 0);            /* backwards */
	/* Seven bytes are not padded: these two run out in the middle. */
	ASSERT_BAD(0, 0, 0, 0, 0, DW_CFA_advance_loc4, 1);
	ASSERT_BAD(DW_CFA_def_cfa, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80);
}

/* 2^31: the rules before it are valid, and so are those behind the next good one. */
static void an_offset_that_no_frame_can_have(void **state)
{
	struct made made = RUN(DW_CFA_advance_loc | 1, DW_CFA_def_cfa_offset, 0x80, 0x80, 0x80, 0x80, 0x08,
			       DW_CFA_advance_loc | 1, DW_CFA_def_cfa_offset, 16);
	(void)state;

	assert_int_equal(rules_at(&made, 0)->cfa.how, SF_HOW_REGISTER_PLUS);
	assert_int_equal(rules_at(&made, 1)->cfa.how, SF_HOW_UNDEFINED);
	assert_int_equal(rules_at(&made, 2)->cfa.how, SF_HOW_REGISTER_PLUS);
	assert_int_equal(rules_at(&made, 2)->cfa.value, 16);
	munmap(made.block, made.table.header->size);
}

static void too_many_remembered_states(void **state)
{
	uint8_t code[200];
	(void)state;

	memset(code, DW_CFA_remember_state, sizeof(code));
	assert_bad(code, sizeof(code));
}

/* All ways to write where a function starts, and how long it is. */
static void pointer_encodings(void **state)
{
	static const struct {
		uint8_t encoding;
		uint64_t base;
		size_t size;  /* 0: LEB128 */
	} cases[] = {
		{ DW_EH_PE_absptr, 0, 8 },
		{ DW_EH_PE_udata4, 0, 4 },
		{ DW_EH_PE_udata8, 0, 8 },
		{ DW_EH_PE_sdata4, 0, 4 },
		{ DW_EH_PE_sdata8, 0, 8 },
		{ DW_EH_PE_uleb128, 0, 0 },
		{ DW_EH_PE_sleb128, 0, 0 },
		{ DW_EH_PE_textrel | DW_EH_PE_udata2, TEXT, 2 },
		{ DW_EH_PE_textrel | DW_EH_PE_sdata2, TEXT, 2 },
		{ DW_EH_PE_textrel | DW_EH_PE_uleb128, TEXT, 0 },
		{ DW_EH_PE_datarel | DW_EH_PE_sdata4, TEXT + 0x1000, 4 },
		{ DW_EH_PE_datarel | DW_EH_PE_sleb128, TEXT + 0x1000, 0 },
		{ DW_EH_PE_pcrel | DW_EH_PE_sdata4, UINT64_MAX, 4 },
		{ DW_EH_PE_pcrel | DW_EH_PE_udata8, UINT64_MAX, 8 },
		{ DW_EH_PE_pcrel | DW_EH_PE_absptr, UINT64_MAX, 8 },
		{ DW_EH_PE_aligned, 0, 8 },
	};
	(void)state;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct builder b = { .eh = true };
		const uint8_t data[] = { cases[i].encoding };
		const size_t size = cases[i].size;
		uint64_t base;
		struct made made;

		open_cie(&b, 1, "zR", data, 1);
		put_initial(&b);
		close_entry(&b);
		open_fde_id(&b);
		while (cases[i].encoding == DW_EH_PE_aligned && b.n % 8)
			put(&b, 0, 1);
		base = cases[i].base == UINT64_MAX ? SECTION + b.n : cases[i].base;
		if (size)
			put(&b, TEXT + 0x2000 - base, size);
		else if (cases[i].encoding & DW_EH_PE_signed)
			put_sleb(&b, (int64_t)(TEXT + 0x2000 - base));
		else
			put_uleb(&b, TEXT + 0x2000 - base);
		if (size)
			put(&b, 0x60, size);
		else if (cases[i].encoding & DW_EH_PE_signed)
			put_sleb(&b, 0x60);
		else
			put_uleb(&b, 0x60);
		put_uleb(&b, 0); /* no augmentation data */
		close_entry(&b);
		made = make(&b);
		assert_null(rules_at(&made, 0x1fff));
		assert_non_null(rules_at(&made, 0x2000));
		assert_non_null(rules_at(&made, 0x205f));
		assert_null(rules_at(&made, 0x2060));
		munmap(made.block, made.table.header->size);
	}
}

static void encodings_that_say_nothing(void **state)
{
	static const uint8_t encodings[] = {
		DW_EH_PE_omit, DW_EH_PE_indirect | DW_EH_PE_udata8, DW_EH_PE_funcrel, 0x60, 0x05,
		0x0d, 0x0f,
	};
	(void)state;

	for (size_t i = 0; i < sizeof(encodings); i++) {
		struct builder b = { .eh = true };
		struct made made;

		open_cie(&b, 1, "zR", &encodings[i], 1);
		put_initial(&b);
		close_entry(&b);
		open_fde(&b, TEXT, 0x10);
		close_entry(&b);
		made = make(&b);
		assert_int_equal(made.table.header->n_rows, 0);
		munmap(made.block, made.table.header->size);
	}
}

/* One function under a CIE with this augmentation; `fde_data` bytes of data in the FDE. */
static struct made augmented(const char *augmentation, const uint8_t *data, size_t size,
			     size_t fde_data)
{
	struct builder b = { .eh = true };

	open_cie(&b, 1, augmentation, data, size);
	put_initial(&b);
	close_entry(&b);
	open_fde(&b, TEXT, 0x10);
	if (augmentation[0] == 'z')
		put_uleb(&b, fde_data);
	for (size_t i = 0; i < fde_data; i++)
		put(&b, DW_CFA_low_user, 1);
	put(&b, DW_CFA_def_cfa_offset, 1);
	put(&b, 0x20, 1);
	close_entry(&b);
	return make(&b);
}

static void augmentations(void **state)
{
	static const struct {
		const char *string;
		uint8_t data[16];
		size_t size;
		uint32_t flags;
	} good[] = {
		{ "", { 0 }, 0, 0 },
		{ "eh", { 0 }, 0, 0 },
		{ "S", { 0 }, 0, SF_RULES_SIGNAL },
		{ "z", { 0 }, 0, 0 },
		{ "zR", { DW_EH_PE_absptr }, 1, 0 },
		{ "zRS", { DW_EH_PE_absptr }, 1, SF_RULES_SIGNAL },
		{ "zRB", { DW_EH_PE_absptr }, 1, 0 },
		{ "zPLR", { DW_EH_PE_udata4, 1, 2, 3, 4, DW_EH_PE_absptr, DW_EH_PE_absptr }, 7, 0 },
		{ "zPR", { 0x9b, 1, 2, 3, 4, DW_EH_PE_absptr }, 6, 0 },
		{ "zPR", { DW_EH_PE_omit, DW_EH_PE_absptr }, 2, 0 },
		{ "zR?", { DW_EH_PE_absptr, 1, 2, 3 }, 4, 0 },
	};
	(void)state;

	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		size_t fde_data = good[i].string[0] == 'z' ? i : 0;
		struct made made = augmented(good[i].string, good[i].data, good[i].size, fde_data);
		const struct sf_rules *rules = rules_at(&made, 0);

		assert_non_null(rules);
		assert_int_equal(rules->cfa.value, 0x20);
		assert_int_equal(rules->flags, good[i].flags);
		munmap(made.block, made.table.header->size);
	}
}

static void bad_augmentations(void **state)
{
	static const uint8_t data[] = { 0x0d, 0, 0, 0 };
	static const char *const bad[] = { "armcc+", "R", "z?R", "z?S", "zPR", "zRRRRRR" };
	(void)state;

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct made made = augmented(bad[i], data, sizeof(data), 0);

		assert_int_equal(made.table.header->n_rows, 0);
		munmap(made.block, made.table.header->size);
	}
}

static void aarch64_signed_returns(void **state)
{
	struct builder b = { .eh = true };
	struct sf_cfi cfi = { .bytes = b.bytes, .address = SECTION, .eh = true };
	struct made made;
	(void)state;

	b.cie = b.n;
	open_entry(&b);
	put(&b, 0, 4);
	put(&b, 3, 1);
	put_string(&b, "zRB");
	put_uleb(&b, 4);       /* code alignment */
	put_sleb(&b, -8);
	put_uleb(&b, 30);
	put_uleb(&b, 1);
	put(&b, DW_EH_PE_absptr, 1);
	put(&b, DW_CFA_def_cfa, 1);
	put(&b, 31, 1);
	put(&b, 0, 1);
	close_entry(&b);
	open_fde(&b, TEXT, 0x40);
	put_uleb(&b, 0);
	put(&b, DW_CFA_advance_loc | 1, 1);
	put(&b, DW_CFA_AARCH64_negate_ra_state, 1);
	put(&b, DW_CFA_offset | 30, 1);
	put(&b, 1, 1);
	put(&b, DW_CFA_advance_loc | 2, 1);
	put(&b, DW_CFA_AARCH64_negate_ra_state, 1);
	close_entry(&b);
	cfi.size = b.n;
	made = make_on(&cfi, &sf_arch_aarch64);
	assert_int_equal(rules_at(&made, 0)->flags, 0);
	assert_int_equal(rules_at(&made, 0)->ra.how, SF_HOW_SAME);
	assert_int_equal(rules_at(&made, 4)->flags, SF_RULES_PAC);
	assert_rule(rules_at(&made, 4)->ra, SF_HOW_AT_CFA, 0, -8);
	assert_int_equal(rules_at(&made, 12)->flags, 0);
	munmap(made.block, made.table.header->size);
}

static void functions_in_any_order_overlapping(void **state)
{
	static const struct { unsigned start, size, offset; } functions[] = {
		{ 0x300, 0x10, 3 }, { 0x100, 0x10, 1 }, { 0, 0x1000, 9 }, { 0x200, 0x10, 2 },
		{ 0x200, 0x20, 8 },
	};
	struct builder b = { .eh = true };
	struct made made;
	(void)state;

	put_cie(&b);
	for (size_t i = 0; i < sizeof(functions) / sizeof(functions[0]); i++) {
		open_fde(&b, TEXT + functions[i].start, functions[i].size);
		put(&b, DW_CFA_def_cfa_offset, 1);
		put(&b, functions[i].offset, 1);
		close_entry(&b);
	}
	made = make(&b);
	assert_int_equal(rules_at(&made, 0)->cfa.value, 9);
	assert_int_equal(rules_at(&made, 0x100)->cfa.value, 1);
	assert_int_equal(rules_at(&made, 0x110)->cfa.value, 9);
	assert_int_equal(rules_at(&made, 0x200)->cfa.value, 2);
	assert_int_equal(rules_at(&made, 0x210)->cfa.value, 8);
	assert_int_equal(rules_at(&made, 0x220)->cfa.value, 9);
	assert_int_equal(rules_at(&made, 0x300)->cfa.value, 3);
	assert_int_equal(rules_at(&made, 0xfff)->cfa.value, 9);
	assert_null(rules_at(&made, 0x1000));
	munmap(made.block, made.table.header->size);
}

/* Rows of an earlier source stay; a later one fills the holes. */
static void the_first_source_wins(void **state)
{
	struct sf_rows *rows = sf_rows_create(TEXT, TEXT + CODE_SIZE);
	const struct sf_table_header header = { .elf_machine = sf_arch_x86_64.elf_machine };
	struct sf_rules first = { .cfa = { .how = SF_HOW_REGISTER_PLUS, .value = 1 } };
	struct sf_rules second = { .cfa = { .how = SF_HOW_REGISTER_PLUS, .value = 2 } };
	struct made made;
	size_t size;
	(void)state;

	for (unsigned i = 1; i < 4; i++) {
		assert_true(sf_rows_begin(rows, TEXT + i * 0x100, TEXT + i * 0x100 + 0x10));
		assert_true(sf_rows_add(rows, TEXT + i * 0x100, &first));
		assert_true(sf_rows_end(rows, true));
	}
	assert_true(sf_rows_settle(rows));
	assert_false(sf_rows_begin(rows, TEXT + 0x104, TEXT + 0x10c));
	assert_true(sf_rows_begin(rows, TEXT + 0x108, TEXT + 0x308));
	assert_true(sf_rows_add(rows, TEXT + 0x108, &second));
	assert_true(sf_rows_end(rows, true));
	assert_true(sf_rows_settle(rows));
	assert_true(sf_rows_pack(rows, &header, &made.block, &size, NULL));
	assert_true(sf_table_init(&made.table, made.block, size));
	sf_rows_destroy(rows);

	assert_null(rules_at(&made, 0xff));
	assert_int_equal(rules_at(&made, 0x10f)->cfa.value, 1);
	assert_int_equal(rules_at(&made, 0x110)->cfa.value, 2);
	assert_int_equal(rules_at(&made, 0x200)->cfa.value, 1);
	assert_int_equal(rules_at(&made, 0x210)->cfa.value, 2);
	assert_int_equal(rules_at(&made, 0x2ff)->cfa.value, 2);
	assert_int_equal(rules_at(&made, 0x300)->cfa.value, 1);
	assert_int_equal(rules_at(&made, 0x30f)->cfa.value, 1);
	assert_null(rules_at(&made, 0x310));
	munmap(made.block, made.table.header->size);
}

static void ranges_outside_the_code(void **state)
{
	static const struct { uint64_t start, size; } ranges[] = {
		{ 0, 0x10 }, { TEXT - 8, 0x10 }, { TEXT + CODE_SIZE, 0x10 }, { TEXT, 0 },
		{ TEXT + 8, UINT64_MAX - 8 }, { UINT64_MAX, 1 },
	};
	struct builder b = { .eh = true };
	struct made made;
	(void)state;

	put_cie(&b);
	for (size_t i = 0; i < sizeof(ranges) / sizeof(ranges[0]); i++) {
		open_fde(&b, ranges[i].start, ranges[i].size);
		close_entry(&b);
	}
	open_fde(&b, TEXT + CODE_SIZE - 0x10, 0x1000); /* cut */
	close_entry(&b);
	made = make(&b);
	assert_int_equal(made.table.header->n_rows, 2);
	assert_int_equal(made.table.header->base, TEXT + CODE_SIZE - 0x10);
	assert_null(rules_at(&made, CODE_SIZE));
	munmap(made.block, made.table.header->size);
}

static void zero_ends_a_section_of_unknown_size(void **state)
{
	struct builder b = { .eh = true };
	struct sf_cfi cfi = { .bytes = b.bytes, .eh = true };
	struct made made;
	(void)state;

	put_cie(&b);
	open_fde(&b, TEXT, 0x10);
	close_entry(&b);
	put(&b, 0, 8);
	open_fde(&b, TEXT + 0x100, 0x10);
	close_entry(&b);
	cfi.size = b.n;
	made = make_on(&cfi, &sf_arch_x86_64);
	assert_non_null(rules_at(&made, 0x100));
	munmap(made.block, made.table.header->size);
	cfi.ends_at_zero = true;
	made = make_on(&cfi, &sf_arch_x86_64);
	assert_non_null(rules_at(&made, 0));
	assert_null(rules_at(&made, 0x100));
	munmap(made.block, made.table.header->size);
}

/* Every prefix of a good section: what is whole gives rows, and nothing is read behind it. */
static void cut_sections(void **state)
{
	struct builder b = { .eh = true };
	size_t first;
	(void)state;

	put_cie(&b);
	open_fde(&b, TEXT, 0x10);
	close_entry(&b);
	first = b.n;
	open_fde(&b, TEXT + 0x10, 0x10);
	close_entry(&b);
	for (size_t n = b.n; n-- > 1;) {
		struct made made;

		b.n = n;
		made = make(&b);
		assert_int_equal(made.table.header->n_rows, n >= first ? 2 : 0);
		munmap(made.block, made.table.header->size);
	}
}

static void lengths_and_cie_pointers_that_lie(void **state)
{
	static const uint32_t values[] = { 0, 1, 3, 5, 0x7fffffff, 0xfffffff0, 0xffffffff };
	(void)state;

	for (unsigned field = 0; field < 2; field++) {
		for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
			struct builder b = { .eh = true };
			struct made made;
			size_t fde;

			put_cie(&b);
			fde = b.n;
			open_fde(&b, TEXT, 0x10);
			close_entry(&b);
			memcpy(b.bytes + fde + 4 * field, &values[i], 4);
			made = make(&b);
			assert_int_equal(made.table.header->n_rows, 0);
			munmap(made.block, made.table.header->size);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(both_formats_both_sections_all_versions),
		cmocka_unit_test(advances),
		cmocka_unit_test(code_behind_the_end_says_nothing),
		cmocka_unit_test(register_rules),
		cmocka_unit_test(more_register_rules),
		cmocka_unit_test(an_sp_that_is_not_the_cfa),
		cmocka_unit_test(an_sp_above_the_cfa),
		cmocka_unit_test(restores),
		cmocka_unit_test(remembered_states_nest),
		cmocka_unit_test(a_return_address_below_sp_is_noted),
		cmocka_unit_test(a_kept_result_is_noted),
		cmocka_unit_test(frame_addresses),
		cmocka_unit_test(expressions),
		cmocka_unit_test(bad_instructions),
		cmocka_unit_test(an_offset_that_no_frame_can_have),
		cmocka_unit_test(too_many_remembered_states),
		cmocka_unit_test(pointer_encodings),
		cmocka_unit_test(encodings_that_say_nothing),
		cmocka_unit_test(augmentations),
		cmocka_unit_test(bad_augmentations),
		cmocka_unit_test(aarch64_signed_returns),
		cmocka_unit_test(functions_in_any_order_overlapping),
		cmocka_unit_test(the_first_source_wins),
		cmocka_unit_test(ranges_outside_the_code),
		cmocka_unit_test(zero_ends_a_section_of_unknown_size),
		cmocka_unit_test(cut_sections),
		cmocka_unit_test(lengths_and_cie_pointers_that_lie),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
