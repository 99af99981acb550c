/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Self and total time per function.
 *
 * The total of a function is the time of all nodes where it is the outermost one of its kind on
 * their path: what is below is in there already, so recursion counts once. One walk through
 * the tree of nodes finds them, with a counter per function of how often it is on the path.
 */
#include <stdlib.h>

#include "base/cleanup.h"
#include "recording/profile/aggregate.h"

struct walk {
	const struct sf_profile *profile;
	const struct sf_node_weight *weights;
	uint32_t *first_child, *next;  /* by node */
	uint32_t *on_path;             /* by function */
	struct sf_function_total *totals; /* by function */
};

static uint32_t function_of(const struct sf_profile *profile, uint32_t node)
{
	return node ? profile->frames[profile->nodes[node].frame].function : 0;
}

static void link_children(struct walk *walk)
{
	for (uint32_t node = walk->profile->n_nodes; node-- > 1;) {
		uint32_t parent = walk->profile->nodes[node].parent;

		if (!walk->weights[node].total_ns)
			continue;
		walk->next[node] = walk->first_child[parent];
		walk->first_child[parent] = node;
	}
}

static void enter(struct walk *walk, uint32_t node)
{
	uint32_t function = function_of(walk->profile, node);
	struct sf_function_total *total = &walk->totals[function];

	total->self_ns += walk->weights[node].self_ns;
	total->samples += walk->weights[node].samples;
	if (walk->profile->frames[walk->profile->nodes[node].frame].approximate)
		total->approximate_ns += walk->weights[node].self_ns;
	if (walk->on_path[function]++ == 0)
		total->total_ns += walk->weights[node].total_ns;
}

/* Depth first and without a stack: back up through the parents. */
static void walk_nodes(struct walk *walk)
{
	uint32_t node = walk->first_child[0];

	while (node) {
		enter(walk, node);
		if (walk->first_child[node]) {
			node = walk->first_child[node];
			continue;
		}
		while (node && !walk->next[node]) {
			walk->on_path[function_of(walk->profile, node)]--;
			node = walk->profile->nodes[node].parent;
		}
		if (node) {
			walk->on_path[function_of(walk->profile, node)]--;
			node = walk->next[node];
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

bool sf_aggregate_functions(const struct sf_profile *profile,
			    const struct sf_node_weight *weights, struct sf_aggregate *ret,
			    struct sf_error *err)
{
	SF_CLEANUP(free) uint32_t *first_child = calloc(profile->n_nodes, sizeof(*first_child));
	SF_CLEANUP(free) uint32_t *next = calloc(profile->n_nodes, sizeof(*next));
	SF_CLEANUP(free) uint32_t *on_path = calloc(profile->n_functions, sizeof(*on_path));
	struct walk walk = { profile, weights, first_child, next, on_path, NULL };

	walk.totals = ret->functions = calloc(profile->n_functions, sizeof(*walk.totals));
	if (!first_child || !next || !on_path || !walk.totals)
		return sf_fail_memory(err);
	link_children(&walk);
	walk_nodes(&walk);
	walk.totals[0] = (struct sf_function_total){
		.self_ns = weights[0].self_ns,
		.total_ns = weights[0].self_ns,
		.samples = weights[0].samples,
	};
	ret->n_functions = sort_totals(walk.totals, profile->n_functions);
	return true;
}
