/* SPDX-License-Identifier: Apache-2.0 */
/* The tree of inlined calls in CoreCLR's rich debug information: the methods at an offset, and trees that are none. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "runtime/coreclr/inlined.h"

/* Packs numbers into nibbles (debug_info.h). */
static uint8_t packed[2048];
static size_t n_nibbles;

static void put_nibble(unsigned nibble)
{
	packed[n_nibbles / 2] |= (uint8_t)(nibble << (n_nibbles % 2 ? 4 : 0));
	n_nibbles++;
}

static void put(uint32_t number)
{
	int shift = 30;

	while (shift > 0 && !(number >> shift))
		shift -= 3;
	for (; shift >= 0; shift -= 3)
		put_nibble((number >> shift & 7) | (shift ? 8 : 0));
}

static void put_from(int32_t last, int32_t number)
{
	const int32_t difference = number - last;

	put(difference < 0 ? (uint32_t)-difference << 1 | 1 : (uint32_t)difference << 1);
}

struct node {
	uint64_t method;
	int32_t child, sibling;
};

struct mapping {
	int32_t native, node, il;
};

static void pack(const struct node *nodes, uint32_t n_nodes, const struct mapping *mappings, uint32_t n_mappings)
{
	struct node last = { 0 };
	struct mapping before = { .il = -2 };

	memset(packed, 0, sizeof(packed));
	n_nibbles = 0;
	put(n_nodes);
	put(n_mappings);
	for (uint32_t i = 0; i < n_nodes; i++) {
		for (unsigned k = 0; k < 16; k++)
			put_nibble(nodes[i].method >> 4 * k & 15);
		put_from(0, 0);
		put_from(last.child, nodes[i].child);
		put_from(last.sibling, nodes[i].sibling);
		last = nodes[i];
	}
	for (uint32_t i = 0; i < n_mappings; i++) {
		put((uint32_t)(mappings[i].native - before.native));
		put_from(before.node, mappings[i].node);
		put_from(before.il, mappings[i].il);
		put(0);
		before = mappings[i];
	}
}

/* 0 calls 1 and 3; 1 calls 2. All are inlined into 0. */
static const struct node tree[] = {
	{ 0x7f0000001008, 1, 0 }, { 0x7f0000002008, 2, 3 }, { 0x7f0000003008, 0, 0 }, { 0x7f0000004008, 0, 0 },
};

static const struct mapping map[] = {
	{ 0, 0, -2 }, { 8, 0, 4 }, { 12, 2, 7 }, { 20, 1, 0 }, { 24, 3, 300 }, { 40, 0, 9 },
};

#define SIZE(array) (sizeof(array) / sizeof((array)[0]))

static size_t find(uint32_t native, struct sf_clr_inlined *ret)
{
	return sf_clr_find_inlined(packed, (n_nibbles + 1) / 2, native, ret);
}

static void methods_at_an_offset(void **state)
{
	struct sf_clr_inlined found[SF_CLR_MAX_INLINED];

	(void)state;
	pack(tree, SIZE(tree), map, SIZE(map));
	assert_int_equal(find(15, found), 3);
	assert_int_equal(found[0].method, tree[2].method);
	assert_int_equal(found[0].il, 7);
	assert_int_equal(found[1].method, tree[1].method);
	assert_int_equal(found[1].il, SF_CLR_NO_IL);
	assert_int_equal(found[2].method, tree[0].method);
	assert_int_equal(find(39, found), 2);
	assert_int_equal(found[0].method, tree[3].method);
	assert_int_equal(found[0].il, 300);
	assert_int_equal(find(0, found), 1);
	assert_int_equal(found[0].il, SF_CLR_NO_IL); /* the prologue */
	assert_int_equal(find(1000, found), 1);
	assert_int_equal(found[0].il, 9);
}

/* Without its last byte the map cannot be read to its end, and with less no offset is found. */
static void cut_short(void **state)
{
	struct sf_clr_inlined found[SF_CLR_MAX_INLINED];

	(void)state;
	pack(tree, SIZE(tree), map, SIZE(map));
	for (size_t n = 0; n < (n_nibbles + 1) / 2; n++)
		assert_int_equal(sf_clr_find_inlined(packed, n, 1000, found), 0);
}

static void check_refused(const struct node *nodes, uint32_t n, int32_t node)
{
	const struct mapping mapping = { .node = node };
	struct sf_clr_inlined found[SF_CLR_MAX_INLINED];

	pack(nodes, n, &mapping, 1);
	assert_int_equal(find(5, found), 0);
}

static void trees_that_are_none(void **state)
{
	static const struct node own_child[] = { { 8, 1, 0 }, { 16, 1, 0 } }, own_sibling[] = { { 8, 1, 0 }, { 16, 0, 1 } },
				 no_such_child[] = { { 8, 2, 0 }, { 16, 0, 0 } },
				 backwards[] = { { 8, 2, 0 }, { 16, 0, 0 }, { 24, 1, 0 } },
				 fine[] = { { 8, 1, 0 }, { 16, 0, 0 } };
	static struct node deep[SF_CLR_MAX_INLINED + 1];

	(void)state;
	check_refused(own_child, SIZE(own_child), 1);
	check_refused(own_sibling, SIZE(own_sibling), 1);
	check_refused(no_such_child, SIZE(no_such_child), 1);
	check_refused(backwards, SIZE(backwards), 1);
	check_refused(fine, SIZE(fine), 2);
	check_refused(fine, SIZE(fine), -1);
	for (size_t i = 0; i + 1 < SIZE(deep); i++)
		deep[i].child = (int32_t)i + 1;
	check_refused(deep, SIZE(deep), SIZE(deep) - 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(methods_at_an_offset),
		cmocka_unit_test(cut_short),
		cmocka_unit_test(trees_that_are_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
