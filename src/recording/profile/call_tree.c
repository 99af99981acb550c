/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The merged call tree: nodes of the profile that are the same path of functions, through whatever
 * addresses and lines, become one node. A path is interned as (its caller's path, function), so
 * its number is its place in the tree.
 */
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/intern.h"
#include "base/vec.h"
#include "recording/profile/aggregate.h"

SF_DEFINE_CLEANUP(struct sf_intern *, sf_intern_destroy)

struct merge {
	struct sf_intern *paths;
	SF_VEC(struct sf_tree_node) tree;
};

/* The tree node of `function` called from tree node `parent`; 0 when memory ran out. */
static uint32_t path_of(struct merge *merge, uint32_t parent, uint32_t function)
{
	const uint32_t key[2] = { parent, function };
	bool is_new;
	uint32_t number = sf_intern_add(merge->paths, key, sizeof(key), &is_new);

	if (number && is_new &&
	    !sf_vec_push(&merge->tree,
			 (struct sf_tree_node){ .parent = parent, .function = function }))
		return 0;
	return number;
}

static bool merge_nodes(struct merge *merge, const struct sf_profile *profile,
			const struct sf_node_weight *weights, uint32_t *path)
{
	for (uint32_t node = 1; node < profile->n_nodes; node++) {
		struct sf_tree_node *merged;

		if (!weights[node].total_ns)
			continue;
		path[node] = path_of(merge, path[profile->nodes[node].parent],
				     profile->frames[profile->nodes[node].frame].function);
		if (!path[node])
			return false;
		merged = &merge->tree.items[path[node]];
		merged->self_ns += weights[node].self_ns;
		if (profile->frames[profile->nodes[node].frame].approximate)
			merged->approximate_ns += weights[node].self_ns;
		merged->total_ns += weights[node].total_ns;
	}
	return true;
}

/* Samples without a stack are a child of the root of their own. */
static bool merge_unknown(struct merge *merge, const struct sf_node_weight *root)
{
	uint32_t number;

	merge->tree.items[0].total_ns = root->total_ns;
	if (!root->self_ns)
		return true;
	number = path_of(merge, 0, 0);
	if (!number)
		return false;
	merge->tree.items[number].self_ns += root->self_ns;
	merge->tree.items[number].total_ns += root->self_ns;
	return true;
}

/* Longest last, so that linking each in front of its siblings leaves the longest first. */
static int compare_nodes(const void *left, const void *right, void *arg)
{
	const struct sf_tree_node *tree = arg;
	const uint32_t a = *(const uint32_t *)left, b = *(const uint32_t *)right;

	if (tree[a].total_ns != tree[b].total_ns)
		return tree[a].total_ns < tree[b].total_ns ? -1 : 1;
	return a > b ? -1 : a < b;
}

static bool link_siblings(struct sf_tree_node *tree, uint32_t n)
{
	SF_CLEANUP(free) uint32_t *order = calloc(n, sizeof(*order));

	if (!order)
		return false;
	for (uint32_t i = 0; i < n; i++)
		order[i] = i;
	qsort_r(order + 1, n - 1, sizeof(*order), compare_nodes, tree);
	for (uint32_t i = 1; i < n; i++) {
		struct sf_tree_node *node = &tree[order[i]];

		node->next = tree[node->parent].first_child;
		tree[node->parent].first_child = order[i];
	}
	return true;
}

bool sf_aggregate_tree(const struct sf_profile *profile, const struct sf_node_weight *weights,
		       struct sf_aggregate *ret, struct sf_error *err)
{
	SF_CLEANUP(sf_intern_destroy) struct sf_intern *paths = sf_intern_create();
	SF_CLEANUP(free) uint32_t *path = calloc(profile->n_nodes, sizeof(*path));
	struct merge merge = { .paths = paths };
	bool done = paths && path && sf_vec_push(&merge.tree, (struct sf_tree_node){ 0 }) &&
		    merge_nodes(&merge, profile, weights, path) &&
		    merge_unknown(&merge, &weights[0]) &&
		    link_siblings(merge.tree.items, (uint32_t)merge.tree.n);

	ret->tree = merge.tree.items; /* the aggregate frees it in any case */
	ret->n_tree = (uint32_t)merge.tree.n;
	return done || sf_fail_memory(err);
}
