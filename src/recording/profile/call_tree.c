/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The merged call tree: nodes of the profile that are the same path of functions, through whatever
 * addresses and lines, become one node. A path is interned as (its caller's path, function), so
 * its number is its place in the tree. Functions have the sums over their nodes in it.
 */
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/intern.h"
#include "base/search.h"
#include "base/vec.h"
#include "recording/profile/aggregate.h"

SF_DEFINE_CLEANUP(struct sf_intern *, sf_intern_destroy)

struct weight {
	uint64_t self_ns, total_ns; /* total: with all nodes below */
	uint32_t samples;           /* which are in memory: there are fewer */
	bool guessed;               /* it, or a node above it */
};

struct merge {
	struct sf_intern *paths;
	SF_VEC(struct sf_tree_node) tree;
	uint64_t *line_ns;          /* by node of the tree: the weight of its line */
};

/* The time of each node, and of all nodes below it: children have larger numbers. */
static struct weight *weigh_nodes(const struct sf_profile *profile, enum sf_clock clock)
{
	struct weight *weights = calloc((size_t)profile->n_nodes + 1, sizeof(*weights));

	if (!weights)
		return NULL;
	for (size_t i = 0; i < profile->n_samples; i++) {
		struct weight *weight = &weights[profile->samples[i].node];
		uint64_t ns = sf_profile_weight(&profile->samples[i], clock);

		weight->self_ns += ns;
		weight->total_ns += ns;
		weight->samples += ns != 0 && !profile->samples[i].unseen;
	}
	for (uint32_t node = profile->n_nodes; node-- > 1;)
		weights[profile->nodes[node].parent].total_ns += weights[node].total_ns;
	return weights;
}

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

/* Adds a node of the profile to the node of the tree that has its path. */
static void merge_node(struct merge *merge, uint32_t number, const struct sf_profile_frame *frame,
		       const struct weight *weight)
{
	struct sf_tree_node *node = &merge->tree.items[number];

	node->self_ns += weight->self_ns;
	node->samples += weight->samples;
	node->total_ns += weight->total_ns;
	if (frame->approximate) {
		node->approximate = true;
		node->approximate_ns += weight->self_ns;
	}
	if (frame->via == SF_VIA_GUESS)
		node->guessed_ns += weight->total_ns;
	if (weight->total_ns > merge->line_ns[number]) {
		merge->line_ns[number] = weight->total_ns;
		node->line = frame->line;
	}
}

static bool merge_nodes(struct merge *merge, const struct sf_profile *profile,
			const struct weight *weights, uint32_t *path)
{
	for (uint32_t node = 1; node < profile->n_nodes; node++) {
		const struct sf_profile_frame *frame = &profile->frames[profile->nodes[node].frame];

		if (!weights[node].total_ns)
			continue;
		path[node] = path_of(merge, path[profile->nodes[node].parent], frame->function);
		if (!path[node])
			return false;
		merge_node(merge, path[node], frame, &weights[node]);
	}
	return true;
}

/* Samples without a stack are a child of the root of their own. */
static bool merge_unknown(struct merge *merge, const struct weight *root, uint32_t *path)
{
	merge->tree.items[0].total_ns = root->total_ns;
	if (!root->self_ns)
		return true;
	path[0] = path_of(merge, 0, 0);
	if (!path[0])
		return false;
	merge->tree.items[path[0]].self_ns = merge->tree.items[path[0]].total_ns = root->self_ns;
	merge->tree.items[path[0]].samples = root->samples;
	return true;
}

/* The time of stacks in which a caller is a guess. */
static uint64_t weigh_guesses(const struct sf_profile *profile, struct weight *weights)
{
	uint64_t ns = 0;

	for (uint32_t node = 1; node < profile->n_nodes; node++) {
		const struct sf_profile_node *of = &profile->nodes[node];

		weights[node].guessed = weights[of->parent].guessed || profile->frames[of->frame].via == SF_VIA_GUESS;
		ns += weights[node].guessed ? weights[node].self_ns : 0;
	}
	return ns;
}

/* Longest last, so that linking each in front of its siblings leaves the longest first. */
static int compare_nodes(const void *left, const void *right, void *arg)
{
	const struct sf_tree_node *tree = arg;
	const uint32_t a = *(const uint32_t *)left, b = *(const uint32_t *)right;

	return tree[a].total_ns != tree[b].total_ns ? sf_order(tree[a].total_ns, tree[b].total_ns) : sf_order(b, a);
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

bool sf_call_tree_init(const struct sf_profile *profile, enum sf_clock clock, struct sf_call_tree *ret)
{
	SF_CLEANUP(sf_intern_destroy) struct sf_intern *paths = sf_intern_create();
	SF_CLEANUP(free) struct weight *weights = weigh_nodes(profile, clock);
	SF_CLEANUP(free) uint64_t *line_ns = calloc((size_t)profile->n_nodes + 1, sizeof(*line_ns));
	struct merge merge = { .paths = paths, .line_ns = line_ns };
	bool done;

	ret->of = calloc((size_t)profile->n_nodes + 1, sizeof(*ret->of));
	done = paths && weights && line_ns && ret->of &&
	       sf_vec_push(&merge.tree, (struct sf_tree_node){ 0 }) &&
	       merge_nodes(&merge, profile, weights, ret->of) &&
	       merge_unknown(&merge, &weights[0], ret->of) &&
	       link_siblings(merge.tree.items, (uint32_t)merge.tree.n);
	ret->guessed_ns = done ? weigh_guesses(profile, weights) : 0;
	ret->nodes = merge.tree.items;
	ret->n = (uint32_t)merge.tree.n;
	return done;
}

void sf_call_tree_deinit(struct sf_call_tree *tree)
{
	free(tree->nodes);
	free(tree->of);
}

/*
 * --- self and total time per function ---
 *
 * The total of a function is the time of all nodes of the tree where it is the outermost one of its kind
 * on their path: what is below is in there already, so recursion counts once. One walk through
 * the tree finds them, with a counter per function of how often it is on the path.
 */

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
		return sf_order(b->self_ns, a->self_ns);
	return a->total_ns != b->total_ns ? sf_order(b->total_ns, a->total_ns) : sf_order(a->function, b->function);
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
