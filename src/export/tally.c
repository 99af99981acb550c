/* SPDX-License-Identifier: Apache-2.0 */
/* Adds up the samples of a profile that have equal keys. */
#include "export/tally.h"

#include <stdlib.h>

#include "base/intern.h"
#include "base/vec.h"

SF_DEFINE_CLEANUP(struct sf_intern *, sf_intern_destroy)

/* Samples with equal keys are one row. Keys are compared as bytes, so the struct has no padding. */
struct key {
	uint32_t thread, node, state, label, second_label;
};

/* Interned numbers are dense, so the number of a sample's key is the number of its row. */
static bool add_sample(struct sf_tally *tally, size_t *capacity, struct sf_intern *keys,
		       const struct sf_profile_sample *sample, bool by_label,
		       enum sf_clock clock)
{
	const uint64_t weight = sf_profile_weight(sample, clock);
	const struct key key = { sample->thread, sample->node, sample->state, by_label ? sample->label : 0,
				 by_label ? sample->second_label : 0 };
	struct sf_tally_row *row;
	bool is_new;
	uint32_t number;

	if (!weight)
		return true;
	number = sf_intern_add(keys, &key, sizeof(key), &is_new);
	if (!number)
		return false;
	if (is_new) {
		if (!sf_vec_grow((void **)&tally->rows, capacity, tally->n_rows, 1,
				 sizeof(*tally->rows)))
			return false;
		tally->rows[tally->n_rows++] = (struct sf_tally_row){
			.thread = sample->thread,
			.node = sample->node,
			.state = sample->state,
			.label = key.label,
			.second_label = key.second_label,
		};
	}
	row = &tally->rows[number - 1];
	row->ticks += sample->ticks;
	row->cpu_ns += sf_profile_weight(sample, SF_CLOCK_CPU);
	row->wall_ns += sf_profile_weight(sample, SF_CLOCK_WALL);
	row->offcpu_ns += sf_profile_weight(sample, SF_CLOCK_OFFCPU);
	row->amount += sample->amount;
	row->weight += weight;
	return true;
}

/* The sample, or of one with a wait for a CPU both parts, as far as they weigh something. */
static bool add_parts(struct sf_tally *tally, size_t *capacity, struct sf_intern *keys,
		      const struct sf_profile_sample *sample, bool by_label, enum sf_clock clock)
{
	struct sf_profile_sample parts[2];
	const size_t n = sf_profile_split_wait(sample, &parts[0], &parts[1]) ? 2 : 1;

	if (clock == SF_CLOCK_CPU || clock == SF_CLOCK_EVENT)
		return add_sample(tally, capacity, keys, sample, by_label, clock);
	for (size_t i = 0; i < n; i++) {
		if (!add_sample(tally, capacity, keys, &parts[i], by_label, clock))
			return false;
	}
	return true;
}

bool sf_tally_create(const struct sf_profile *profile, enum sf_clock clock, bool by_label,
		     struct sf_tally **ret, struct sf_error *err)
{
	SF_CLEANUP(sf_tally_destroy) struct sf_tally *tally = calloc(1, sizeof(*tally));
	SF_CLEANUP(sf_intern_destroy) struct sf_intern *keys = sf_intern_create();
	size_t capacity = 0;

	if (!tally || !keys)
		return sf_fail_memory(err);
	for (size_t i = 0; i < profile->n_samples; i++) {
		if (!add_parts(tally, &capacity, keys, &profile->samples[i], by_label, clock))
			return sf_fail_memory(err);
	}
	*ret = sf_steal(&tally);
	return true;
}

void sf_tally_destroy(struct sf_tally *tally)
{
	if (!tally)
		return;
	free(tally->rows);
	free(tally);
}

const char *sf_tally_thread_name(const struct sf_profile *profile, uint32_t thread)
{
	const struct sf_profile_thread *t = &profile->threads[thread];

	if (*sf_profile_string(profile, t->name))
		return sf_profile_string(profile, t->name);
	if (*sf_profile_string(profile, t->process_name))
		return sf_profile_string(profile, t->process_name);
	return "thread";
}

/* errno is still that of the last write: after a write that failed, only writes follow. */
bool sf_export_finish(FILE *out, struct sf_error *err)
{
	if (!ferror(out) && fflush(out) == 0)
		return true;
	return sf_fail_os(err, "cannot write the export");
}
