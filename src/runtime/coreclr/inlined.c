/* SPDX-License-Identifier: Apache-2.0 */
/* Reads CoreCLR's rich debug information: the tree of inlined calls, and the node of the tree at an offset. */
#include "runtime/coreclr/inlined.h"

#include <stdlib.h>

#include "base/cleanup.h"
#include "runtime/coreclr/debug_info.h"

#define MAX_SIZE (1u << 20)
#define MAX_NODES 4096u
#define MAX_MAPPINGS 65536u
#define MAX_IL (1u << 24)
#define FIRST_IL (-2)    /* from which the first difference of an IL offset counts */

struct node {
	uint64_t method;
	uint32_t child, sibling;  /* 0: none */
	uint32_t parent;
};

static void read_nodes(struct sf_clr_nibbles *nibbles, struct node *nodes, uint32_t n)
{
	uint32_t il = (uint32_t)FIRST_IL, child = 0, sibling = 0;

	for (uint32_t i = 0; i < n && !nibbles->bytes.bad; i++) {
		nodes[i].method = sf_clr_nibbles_handle(nibbles);
		/* Where the call is in the caller's IL: .NET 10 writes no sense there. */
		il = sf_clr_nibbles_from(nibbles, il);
		nodes[i].child = child = sf_clr_nibbles_from(nibbles, child);
		nodes[i].sibling = sibling = sf_clr_nibbles_from(nibbles, sibling);
	}
}

/* Gives each node its parent, which comes before it. False: it is no tree. */
static bool find_parents(struct node *nodes, uint32_t n)
{
	uint32_t n_seen = 0;

	for (uint32_t i = 0; i < n; i++) {
		for (uint32_t at = nodes[i].child; at; at = nodes[at].sibling) {
			if (at <= i || at >= n || ++n_seen >= n)
				return false;
			nodes[at].parent = i;
		}
	}
	return true;
}

/* The last mapping that begins at the offset or before it. Native offsets ascend. */
static bool find_node(struct sf_clr_nibbles *nibbles, uint32_t n, uint32_t native, uint32_t *node_ret, uint32_t *il_ret)
{
	uint32_t node = 0, il = (uint32_t)FIRST_IL;
	uint64_t offset = 0;
	bool found = false;

	for (uint32_t i = 0; i < n; i++) {
		offset += sf_clr_nibbles_number(nibbles);
		node = sf_clr_nibbles_from(nibbles, node);
		il = sf_clr_nibbles_from(nibbles, il);
		sf_clr_nibbles_number(nibbles); /* its source */
		if (nibbles->bytes.bad)
			return false;
		if (offset > native)
			break;
		*node_ret = node;
		*il_ret = il;
		found = true;
	}
	return found;
}

static size_t list(const struct node *nodes, uint32_t n, uint32_t node, uint32_t il,
		   struct sf_clr_inlined ret[SF_CLR_MAX_INLINED])
{
	size_t depth = 0;

	if (node >= n)
		return 0;
	ret[depth++] = (struct sf_clr_inlined){ nodes[node].method, il < MAX_IL ? il : SF_CLR_NO_IL };
	while (node) {
		if (depth == SF_CLR_MAX_INLINED)
			return 0;
		node = nodes[node].parent;
		ret[depth++] = (struct sf_clr_inlined){ nodes[node].method, SF_CLR_NO_IL };
	}
	return depth;
}

size_t sf_clr_find_inlined(const uint8_t *bytes, size_t size, uint32_t native,
			   struct sf_clr_inlined ret[SF_CLR_MAX_INLINED])
{
	struct sf_clr_nibbles nibbles = { .bytes = sf_bytes_of(bytes, size) };
	const uint32_t n_nodes = sf_clr_nibbles_number(&nibbles), n_mappings = sf_clr_nibbles_number(&nibbles);
	SF_CLEANUP(free) struct node *nodes = NULL;
	uint32_t node = 0, il = 0;

	if (nibbles.bytes.bad || !n_nodes || n_nodes > MAX_NODES || n_mappings > MAX_MAPPINGS)
		return 0;
	nodes = calloc(n_nodes, sizeof(*nodes));
	if (!nodes)
		return 0;
	read_nodes(&nibbles, nodes, n_nodes);
	if (nibbles.bytes.bad || !find_parents(nodes, n_nodes) ||
	    !find_node(&nibbles, n_mappings, native, &node, &il))
		return 0;
	return list(nodes, n_nodes, node, il, ret);
}

size_t sf_clr_inlined_at(const struct sf_clr_description *description, const struct sf_reader *memory,
			 uint64_t header, uint32_t native, struct sf_clr_inlined ret[SF_CLR_MAX_INLINED])
{
	SF_CLEANUP(free) uint8_t *bytes = NULL;
	uint64_t at;
	uint32_t size;

	if (!sf_clr_rich_info(description, memory, header, &at, &size) || !size || size > MAX_SIZE)
		return 0;
	bytes = malloc(size);
	if (!bytes || !sf_read(memory, bytes, at, size))
		return 0;
	return sf_clr_find_inlined(bytes, size, native, ret);
}
