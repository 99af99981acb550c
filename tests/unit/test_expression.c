/* SPDX-License-Identifier: Apache-2.0 */
/* DWARF expressions in unwind rules: every operation, and everything that must end one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "frozen/unwind/expression.h"

#define FIRST_WORD 0x1122334455667788

static const uint64_t memory[4] = { FIRST_WORD, 0xffffffffffffff00, 3, 4 };

/* Memory at 0x1000; the stack goes on to 0x2000 but was not copied. */
static const struct sf_reader reader = {
	.window = (const uint8_t *)memory,
	.window_start = 0x1000,
	.window_size = sizeof(memory),
	.stack_end = 0x2000,
};

static struct sf_regs registers(void)
{
	struct sf_regs regs = { .pc = 0 };

	sf_reg_set(&regs, 0, 0x100);
	sf_reg_set(&regs, 7, 0x1000);
	sf_reg_set(&regs, 16, 0x40000b);
	sf_reg_set(&regs, 31, 0x3100);
	return regs;
}

static bool eval(const uint8_t *bytes, size_t size, uint64_t *ret, enum sf_end *why)
{
	const struct sf_expression expression = { .bytes = bytes, .size = size };
	const struct sf_regs regs = registers();

	return sf_expression_eval(&expression, &regs, &reader, ret, why);
}

struct good {
	uint64_t value;
	uint8_t size;
	uint8_t bytes[24];
};

#define BYTES(...) sizeof((uint8_t[]){ __VA_ARGS__ }), { __VA_ARGS__ }

static const struct good good[] = {
	{ 0, BYTES(0x30) },                                    /* lit0 */
	{ 31, BYTES(0x4f) },                                   /* lit31 */
	{ 0x0807060504030201, BYTES(0x03, 1, 2, 3, 4, 5, 6, 7, 8) }, /* addr */
	{ 0xff, BYTES(0x08, 0xff) },                           /* const1u */
	{ -1ull, BYTES(0x09, 0xff) },                          /* const1s */
	{ 0x8001, BYTES(0x0a, 0x01, 0x80) },                   /* const2u */
	{ -0x7fffull, BYTES(0x0b, 0x01, 0x80) },               /* const2s */
	{ 0x80000000, BYTES(0x0c, 0, 0, 0, 0x80) },            /* const4u */
	{ -0x80000000ull, BYTES(0x0d, 0, 0, 0, 0x80) },        /* const4s */
	{ 1ull << 63, BYTES(0x0e, 0, 0, 0, 0, 0, 0, 0, 0x80) }, /* const8u */
	{ 1ull << 63, BYTES(0x0f, 0, 0, 0, 0, 0, 0, 0, 0x80) }, /* const8s */
	{ 624485, BYTES(0x10, 0xe5, 0x8e, 0x26) },             /* constu */
	{ -123456ull, BYTES(0x11, 0xc0, 0xbb, 0x78) },         /* consts */
	{ 1ull << 63, BYTES(0x10, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x01) },
	{ 1ull << 63, BYTES(0x11, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x7f) },
	{ 10, BYTES(0x35, 0x12, 0x22) },                       /* 5 dup plus */
	{ 5, BYTES(0x35, 0x36, 0x13) },                        /* 5 6 drop */
	{ 5, BYTES(0x35, 0x36, 0x14) },                        /* 5 6 over */
	{ 5, BYTES(0x35, 0x36, 0x37, 0x15, 2) },               /* 5 6 7 pick 2 */
	{ 1, BYTES(0x35, 0x36, 0x16, 0x1c) },                  /* 5 6 swap minus */
	{ 6, BYTES(0x35, 0x36, 0x37, 0x17) },                  /* 5 6 7 rot: 7 5 6 */
	{ 5, BYTES(0x35, 0x36, 0x37, 0x17, 0x13) },
	{ 7, BYTES(0x35, 0x36, 0x37, 0x17, 0x13, 0x13) },
	{ FIRST_WORD, BYTES(0x77, 0, 0x06) },                   /* breg7 0 deref */
	{ 4, BYTES(0x77, 24, 0x06) },
	{ 0xff, BYTES(0x77, 9, 0x94, 1) },                     /* not sign-extended */
	{ 0x7788, BYTES(0x77, 0, 0x94, 2) },                   /* deref_size */
	{ 0x223344, BYTES(0x77, 4, 0x94, 3) },
	{ 5, BYTES(0x09, 0xfb, 0x19) },                        /* abs */
	{ 1ull << 63, BYTES(0x0e, 0, 0, 0, 0, 0, 0, 0, 0x80, 0x19) },
	{ 4, BYTES(0x36, 0x3c, 0x1a) },                        /* and */
	{ -3ull, BYTES(0x09, 0xfa, 0x32, 0x1b) },              /* -6 / 2 */
	{ 1ull << 63, BYTES(0x0e, 0, 0, 0, 0, 0, 0, 0, 0x80, 0x09, 0xff, 0x1b) }, /* no trap */
	{ -1ull, BYTES(0x35, 0x36, 0x1c) },                    /* 5 - 6 */
	{ 2, BYTES(0x38, 0x33, 0x1d) },                        /* mod */
	{ 24, BYTES(0x38, 0x33, 0x1e) },                       /* mul */
	{ -5ull, BYTES(0x35, 0x1f) },                          /* neg */
	{ ~5ull, BYTES(0x35, 0x20) },                          /* not */
	{ 7, BYTES(0x36, 0x33, 0x21) },                        /* or */
	{ 11, BYTES(0x38, 0x33, 0x22) },                       /* plus */
	{ 133, BYTES(0x35, 0x23, 0x80, 0x01) },                /* plus_uconst 128 */
	/* Bit 0x40 of the last byte is the sign of a signed LEB128 number, and an ordinary bit here. */
	{ 5 + 64, BYTES(0x35, 0x23, 0x40) },
	{ 5 + 127, BYTES(0x35, 0x23, 0x7f) },
	{ 5 + 0x2000, BYTES(0x35, 0x23, 0x80, 0xc0, 0x00) },
	{ 5 + 0x3fff, BYTES(0x35, 0x23, 0xff, 0x7f) },
	{ 64, BYTES(0x10, 0x40) }, { 127, BYTES(0x10, 0x7f) }, /* constu */
	{ -64ull, BYTES(0x11, 0x40) }, { 63, BYTES(0x11, 0x3f) }, /* consts */
	{ 64, BYTES(0x11, 0xc0, 0x00) },
	{ -1ull, BYTES(0x11, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f) },
	{ 0x7f, BYTES(0x09, 0x7f) }, { 0x7fff, BYTES(0x0b, 0xff, 0x7f) }, /* const1s, const2s */
	{ 0x7fffffff, BYTES(0x0d, 0xff, 0xff, 0xff, 0x7f) },   /* const4s */
	{ 0x8000, BYTES(0x0a, 0x00, 0x80) },                   /* const2u */
	{ 0xffffffff, BYTES(0x0c, 0xff, 0xff, 0xff, 0xff) },   /* const4u */
	{ 0x1100 - 64, BYTES(0x77, 0xc0, 0x01) },              /* breg7 192 */
	{ 0x1000 - 64, BYTES(0x77, 0x40) },                    /* breg7 -64 */
	{ 0x101, BYTES(0x70, 1) }, { 0x3101, BYTES(0x8f, 1) }, /* breg0 1, breg31 1 */
	{ 0xff, BYTES(0x92, 0, 0x7f) },                        /* bregx 0 -1 */
	{ 16, BYTES(0x40) },                                   /* lit16 */
	{ 5, BYTES(0x35, 0x19) },                              /* abs of a positive number */
	{ 5, BYTES(0x09, 0xfb, 0x1f) },                        /* neg of a negative one */
	{ -3ull, BYTES(0x36, 0x09, 0xfe, 0x1b) },              /* 6 / -2 */
	{ 5, BYTES(0x09, 0xff, 0x3a, 0x1d) },                  /* mod is unsigned */
	{ 1ull << 63, BYTES(0x31, 0x08, 63, 0x24) },           /* the widest shifts */
	{ 1, BYTES(0x09, 0xff, 0x08, 63, 0x25) },
	{ 0, BYTES(0x35, 0x08, 64, 0x26) },
	{ -1ull, BYTES(0x0e, 0, 0, 0, 0, 0, 0, 0, 0x80, 0x08, 64, 0x26) },
	{ -1ull, BYTES(0x0e, 0, 0, 0, 0, 0, 0, 0, 0x80, 0x08, 63, 0x26) },
	{ 7, BYTES(0x35, 0x36, 0x37, 0x15, 0) },               /* pick 0 */
	{ 6, BYTES(0x35, 0x36, 0x37, 0x16) },                  /* 5 7 6: swap */
	{ 7, BYTES(0x35, 0x36, 0x37, 0x16, 0x13) },
	{ FIRST_WORD, BYTES(0x77, 0, 0x94, 8) },               /* deref_size 8 */
	{ 0x55667788, BYTES(0x77, 0, 0x94, 4) },
	{ 5, BYTES(0x35, 0x0e, 0, 0, 0, 0, 1, 0, 0, 0, 0x28, 1, 0, 0x36) }, /* bra: all 64 bits count */
	{ 1, BYTES(0x31, 0x30, 0x2a) },                        /* 1 ge 0, 1 gt 0 */
	{ 1, BYTES(0x31, 0x30, 0x2b) }, { 0, BYTES(0x31, 0x30, 0x2c) },
	{ 0, BYTES(0x31, 0x30, 0x2d) },
	{ 40, BYTES(0x35, 0x33, 0x24) },                       /* shl */
	{ 0, BYTES(0x35, 0x08, 64, 0x24) },
	{ 0x1fffffffffffffff, BYTES(0x09, 0xff, 0x33, 0x25) }, /* shr */
	{ 0, BYTES(0x09, 0xff, 0x08, 64, 0x25) },
	{ -1ull, BYTES(0x09, 0xfe, 0x33, 0x26) },              /* shra */
	{ -1ull, BYTES(0x09, 0xfe, 0x08, 200, 0x26) },
	{ 5, BYTES(0x36, 0x33, 0x27) },                        /* xor */
	{ 1, BYTES(0x35, 0x35, 0x29) }, { 0, BYTES(0x35, 0x36, 0x29) }, /* eq */
	{ 1, BYTES(0x35, 0x35, 0x2a) }, { 0, BYTES(0x09, 0xff, 0x30, 0x2a) }, /* ge, signed */
	{ 0, BYTES(0x35, 0x35, 0x2b) }, { 1, BYTES(0x30, 0x09, 0xff, 0x2b) }, /* gt */
	{ 1, BYTES(0x35, 0x35, 0x2c) }, { 0, BYTES(0x30, 0x09, 0xff, 0x2c) }, /* le */
	{ 0, BYTES(0x35, 0x35, 0x2d) }, { 1, BYTES(0x09, 0xff, 0x30, 0x2d) }, /* lt */
	{ 0, BYTES(0x35, 0x35, 0x2e) }, { 1, BYTES(0x35, 0x36, 0x2e) }, /* ne */
	{ 5, BYTES(0x35, 0x2f, 1, 0, 0x36) },                  /* skip */
	{ 5, BYTES(0x35, 0x2f, 0, 0) },                        /* skip to the end */
	{ 5, BYTES(0x35, 0x31, 0x28, 1, 0, 0x36) },            /* bra, taken */
	{ 6, BYTES(0x35, 0x30, 0x28, 1, 0, 0x36) },            /* not taken */
	{ 0, BYTES(0x39, 0x31, 0x1c, 0x12, 0x28, 0xfa, 0xff) }, /* backwards: count 9 down to 0 */
	{ 0xff8, BYTES(0x77, 0x78) },                          /* breg7 -8 */
	{ 0x40000f, BYTES(0x92, 16, 4) },                      /* bregx 16 4 */
	{ 5, BYTES(0x35, 0x96) },                              /* nop */
	/* The rule that ld writes for the PLT: breg7 8 breg16 0 lit15 and lit11 ge lit3 shl plus */
	{ 0x1010, BYTES(0x77, 8, 0x80, 0, 0x3f, 0x1a, 0x3b, 0x2a, 0x33, 0x24, 0x22) },
};

static void every_operation(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		uint64_t value = 0xdead;
		enum sf_end why;

		if (!eval(good[i].bytes, good[i].size, &value, &why))
			fail_msg("expression %zu failed with %d", i, (int)why);
		if (value != good[i].value)
			fail_msg("expression %zu gives %llx", i, (unsigned long long)value);
	}
}

struct bad {
	enum sf_end why;
	uint8_t size;
	uint8_t bytes[24];
};

static const struct bad bad[] = {
	{ SF_END_EXPRESSION, BYTES(0x13) },                    /* drop of nothing */
	{ SF_END_EXPRESSION, BYTES(0x12) }, { SF_END_EXPRESSION, BYTES(0x35, 0x14) },
	{ SF_END_EXPRESSION, BYTES(0x35, 0x15, 1) }, { SF_END_EXPRESSION, BYTES(0x35, 0x15) },
	{ SF_END_EXPRESSION, BYTES(0x35, 0x16) }, { SF_END_EXPRESSION, BYTES(0x35, 0x36, 0x17) },
	{ SF_END_EXPRESSION, BYTES(0x35, 0x22) }, { SF_END_EXPRESSION, BYTES(0x19) },
	{ SF_END_EXPRESSION, BYTES(0x35, 0x13) },              /* nothing is left */
	{ SF_END_EXPRESSION, BYTES(0x35, 0x30, 0x1b) },        /* by zero */
	{ SF_END_EXPRESSION, BYTES(0x35, 0x30, 0x1d) },
	{ SF_END_EXPRESSION, BYTES(0x08) }, { SF_END_EXPRESSION, BYTES(0x0e, 1, 2, 3) },
	{ SF_END_EXPRESSION, BYTES(0x10, 0x80) },
	{ SF_END_EXPRESSION, BYTES(0x10, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0) },
	{ SF_END_EXPRESSION, BYTES(0x35, 0x2f, 1, 0) },        /* jumps out, ahead and behind */
	{ SF_END_EXPRESSION, BYTES(0x35, 0x2f, 0, 0x80) }, { SF_END_EXPRESSION, BYTES(0x35, 0x2f, 0) },
	{ SF_END_EXPRESSION, BYTES(0x2f, 0xfd, 0xff) },        /* for ever */
	{ SF_END_EXPRESSION, BYTES(0x35, 0x31, 0x28, 1, 0) },  /* a bra that jumps out */
	{ SF_END_EXPRESSION, BYTES(0x28, 0, 0) },              /* a bra without a condition */
	{ SF_END_EXPRESSION, BYTES(0x35, 0x23) },              /* plus_uconst without an operand */
	{ SF_END_EXPRESSION, BYTES(0x23, 1) }, { SF_END_EXPRESSION, BYTES(0x92, 7) },
	{ SF_END_EXPRESSION, BYTES(0x77, 0x80) }, { SF_END_EXPRESSION, BYTES(0x0a, 1) },
	{ SF_END_EXPRESSION, BYTES(0x06) }, { SF_END_EXPRESSION, BYTES(0x35, 0x94) },
	{ SF_END_EXPRESSION, BYTES(0x35, 0x2f, 0xfc, 0xff) },  /* until the stack is full */
	{ SF_END_EXPRESSION, BYTES(0x77, 0, 0x94, 0) }, { SF_END_EXPRESSION, BYTES(0x77, 0, 0x94, 9) },
	{ SF_END_EXPRESSION, BYTES(0x50) },                    /* reg0 */
	{ SF_END_EXPRESSION, BYTES(0x91, 0) },                 /* fbreg */
	{ SF_END_EXPRESSION, BYTES(0x9c) },                    /* call_frame_cfa */
	{ SF_END_EXPRESSION, BYTES(0x00) }, { SF_END_EXPRESSION, BYTES(0xff) },
	{ SF_END_EXPRESSION, BYTES(0x92, 33, 0) }, { SF_END_EXPRESSION, BYTES(0x92, 0xff, 0x7f, 0) },
	{ SF_END_REGISTER, BYTES(0x73, 0) },                   /* breg3, which is not known */
	{ SF_END_REGISTER, BYTES(0x92, 32, 0) },
	{ SF_END_MEMORY, BYTES(0x30, 0x06) },                  /* *NULL */
	{ SF_END_MEMORY, BYTES(0x09, 0xff, 0x06) },            /* wraps around */
	{ SF_END_COPY, BYTES(0x77, 32, 0x06) },                /* behind the copy */
	{ SF_END_COPY, BYTES(0x77, 25, 0x06) },                /* half behind it */
	{ SF_END_MEMORY, BYTES(0x0a, 0x00, 0x20, 0x06) },      /* behind the stack */
};

static void everything_wrong_is_an_end(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		uint64_t value;
		enum sf_end why = SF_N_ENDS;

		if (eval(bad[i].bytes, bad[i].size, &value, &why))
			fail_msg("expression %zu gives %llx", i, (unsigned long long)value);
		if (why != bad[i].why)
			fail_msg("expression %zu ends with %d", i, (int)why);
	}
}

static void an_empty_one_gives_only_what_it_started_with(void **state)
{
	struct sf_expression expression = { .has_initial = true, .initial = 42 };
	const struct sf_regs regs = registers();
	enum sf_end why;
	uint64_t value;
	(void)state;

	assert_true(sf_expression_eval(&expression, &regs, &reader, &value, &why));
	assert_int_equal(value, 42);
	expression.has_initial = false;
	assert_false(sf_expression_eval(&expression, &regs, &reader, &value, &why));
	assert_int_equal(why, SF_END_EXPRESSION);
}

static void the_bounds_are_exact(void **state)
{
	uint8_t bytes[257];
	enum sf_end why;
	uint64_t value;
	(void)state;

	memset(bytes, 0x96, sizeof(bytes));
	bytes[0] = 0x35;
	assert_true(eval(bytes, 256, &value, &why));
	assert_false(eval(bytes, 257, &value, &why));
	memset(bytes, 0x35, sizeof(bytes));
	assert_true(eval(bytes, 32, &value, &why));
	assert_false(eval(bytes, 33, &value, &why));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_operation),
		cmocka_unit_test(everything_wrong_is_an_end),
		cmocka_unit_test(an_empty_one_gives_only_what_it_started_with),
		cmocka_unit_test(the_bounds_are_exact),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
