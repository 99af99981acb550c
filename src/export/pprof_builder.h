/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The message while it is made: shared by pprof.c (samples, labels, the rest) and
 * pprof_places.c (locations, functions, mappings), and by nothing else.
 */
#ifndef SF_EXPORT_PPROF_BUILDER_H
#define SF_EXPORT_PPROF_BUILDER_H

#include "base/intern.h"
#include "base/vec.h"
#include "export/pool.h"
#include "recording/profile/profile.h"
#include "profile.pb-c.h"

typedef Perftools__Profiles__Profile profile_t;
typedef Perftools__Profiles__ValueType value_type_t;
typedef Perftools__Profiles__Sample sample_t;
typedef Perftools__Profiles__Label label_t;
typedef Perftools__Profiles__Mapping mapping_t;
typedef Perftools__Profiles__Location location_t;
typedef Perftools__Profiles__Line line_t;
typedef Perftools__Profiles__Function function_t;

struct sf_pprof_builder {
	const struct sf_profile *profile;
	struct sf_pool pool;
	struct sf_intern *strings, *locations;  /* a location is its frames' numbers */
	SF_VEC(uint32_t) frames;                /* of the location at hand, innermost first */
	SF_VEC(uint64_t) stack;
	SF_VEC(location_t *) location_list;
	bool *function_used;
	uint64_t *module_end;
	bool no_memory;
	profile_t message;
};

/* Zeroed. On failure the builder remembers and the caller returns at once. */
static inline void *take(struct sf_pprof_builder *builder, size_t n, size_t size)
{
	void *memory = sf_pool_take(&builder->pool, n, size);

	builder->no_memory |= !memory;
	return memory;
}

#define take_array(builder, type, n) ((type *)take((builder), (n), sizeof(type)))

#define take_message(builder, type, init)                                                          \
	({                                                                                         \
		type *message_ = take_array((builder), type, 1);                                   \
		if (message_)                                                                      \
			init(message_);                                                            \
		message_;                                                                          \
	})

/* The index of a string; "" is always 0. */
static inline int64_t string(struct sf_pprof_builder *builder, const char *text)
{
	uint32_t number;

	if (!text || !*text)
		return 0;
	number = sf_intern_string(builder->strings, text);
	builder->no_memory |= !number;
	return number;
}

static inline int64_t profile_string(struct sf_pprof_builder *builder, uint32_t number)
{
	return string(builder, sf_profile_string(builder->profile, number));
}

/* Fills builder->stack with the locations of a stack, making those that are new. */
bool sf_pprof_stack(struct sf_pprof_builder *builder, uint32_t node);

/* The functions and mappings of the locations that were made; the location list itself. */
bool sf_pprof_places(struct sf_pprof_builder *builder);

/* Samples without any frame stand in a function of their own, behind the last real one. */
static inline uint32_t no_stack_function(const struct sf_pprof_builder *builder)
{
	return builder->profile->n_functions ? builder->profile->n_functions : 1;
}

#endif
