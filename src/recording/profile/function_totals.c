/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Self and total time per function.
 *
 * The total of a function is the time of all nodes of the call tree where it is the outermost one of its kind
 * on their path: what is below is in there already, so recursion counts once. One walk through
 * the tree finds them, with a counter per function of how often it is on the path.
 */
#include <stdlib.h>

#include "base/cleanup.h"
#include "recording/profile/aggregate.h"

static void enter(const struct sf_tree_node *node, uint32_t *on_path, struct sf_function_total *total)
{
	total->self_ns += node->self_ns;
	total->samples += node->samples;
	total->approximate_ns += node->approximate_ns;
	if ((*on_path)++ == 0)
		total->total_ns += node->total_ns;
}

/* Depth first and without a stack: back up through the parents. */
static void walk_tree(const struct sf_tree_node *tree, uint32_t *on_path, struct sf_function_total *totals)
{
	uint32_t node = tree[0].first_child;

	while (node) {
		enter(&tree[node], &on_path[tree[node].function], &totals[tree[node].function]);
		if (tree[node].first_child) {
			node = tree[node].first_child;
			continue;
		}
		while (node && !tree[node].next) {
			on_path[tree[node].function]--;
			node = tree[node].parent;
		}
		if (node) {
			on_path[tree[node].function]--;
			node = tree[node].next;
		}
	}
}

static int compare_totals(const void *left, const void *right)
{
	const struct sf_function_total *a = left, *b = right;

	if (a->self_ns != b->self_ns)
		return a->self_ns > b->self_ns ? -1 : 1;
	if (a->total_ns != b->total_ns)
		return a->total_ns > b->total_ns ? -1 : 1;
	return a->function < b->function ? -1 : a->function > b->function;
}

static size_t sort_totals(struct sf_function_total *totals, uint32_t n)
{
	size_t kept = 0;

	for (uint32_t i = 0; i < n; i++) {
		if (!totals[i].total_ns)
			continue;
		totals[kept] = totals[i];
		totals[kept++].function = i;
	}
	qsort(totals, kept, sizeof(*totals), compare_totals);
	return kept;
}

bool sf_aggregate_functions(const struct sf_profile *profile, struct sf_aggregate *ret, struct sf_error *err)
{
	SF_CLEANUP(free) uint32_t *on_path = calloc(profile->n_functions, sizeof(*on_path));

	ret->functions = calloc(profile->n_functions, sizeof(*ret->functions));
	if (!on_path || !ret->functions)
		return sf_fail_memory(err);
	walk_tree(ret->tree.nodes, on_path, ret->functions);
	ret->n_functions = sort_totals(ret->functions, profile->n_functions);
	return true;
}
