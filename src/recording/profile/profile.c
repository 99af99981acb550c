/* SPDX-License-Identifier: Apache-2.0 */
/* Functions on a loaded profile: names, weights, keeping only some of it, and its release. */
#include "recording/profile/profile.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

#define DROPPED UINT32_MAX

void sf_profile_destroy(struct sf_profile *profile)
{
	if (!profile)
		return;
	if (profile->strings)
		free(profile->strings[0]); /* the block that holds them all */
	free(profile->strings);
	free(profile->functions);
	free(profile->frames);
	free(profile->nodes);
	free(profile->modules);
	free(profile->threads);
	free(profile->labels);
	free(profile->notes);
	free(profile->samples);
	free(profile->losses);
	free(profile->holds);
	free(profile->command);
	free(profile->engine);
	free(profile->host);
	free(profile->version);
	free(profile->measure.name);
	free(profile->measure.unit);
	free(profile);
}

const char *const sf_clock_words[] = {
	[SF_CLOCK_WALL] = "wall",
	[SF_CLOCK_CPU] = "cpu",
	[SF_CLOCK_OFFCPU] = "offcpu",
	[SF_CLOCK_EVENT] = "event",
	NULL,
};

uint64_t sf_profile_weight(const struct sf_profile_sample *sample, enum sf_clock clock)
{
	switch (clock) {
	case SF_CLOCK_WALL:
		return sample->wall_ns;
	case SF_CLOCK_CPU:
		return sample->cpu_ns;
	case SF_CLOCK_OFFCPU:
		return sample->wall_ns > sample->cpu_ns ? sample->wall_ns - sample->cpu_ns : 0;
	case SF_CLOCK_EVENT:
		return sample->amount;
	}
	return 0;
}

bool sf_profile_split_wait(const struct sf_profile_sample *sample, struct sf_profile_sample *on_cpu_ret,
			   struct sf_profile_sample *waiting_ret)
{
	*on_cpu_ret = *waiting_ret = *sample;
	if (sample->state != SF_STATE_RUNNING || sample->wall_ns <= sample->cpu_ns)
		return false;
	on_cpu_ret->wall_ns = sample->cpu_ns;
	waiting_ret->state = SF_STATE_RUNNABLE;
	waiting_ret->amount = 0;
	waiting_ret->cpu_ns = 0;
	waiting_ret->wall_ns = sample->wall_ns - sample->cpu_ns;
	waiting_ret->ticks = (uint32_t)((double)sample->ticks * (double)waiting_ret->wall_ns / (double)sample->wall_ns);
	on_cpu_ret->ticks -= waiting_ret->ticks;
	return true;
}

bool sf_profile_has_clock(const struct sf_profile *profile, const char *path, enum sf_clock clock, struct sf_error *err)
{
	const struct sf_profile_measure *measure = &profile->measure;

	if (clock == SF_CLOCK_EVENT && !measure->name)
		return sf_fail(err, SF_E_INPUT, "%s has times and no event: use --clock wall, cpu or offcpu (record --event counts events)", path);
	if (clock != SF_CLOCK_EVENT && measure->is_all)
		return sf_fail(err, SF_E_INPUT, "%s counts %s and has no times: leave --clock out, or use --clock event", path, measure->name);
	return true;
}

const char *sf_profile_string(const struct sf_profile *profile, uint32_t string)
{
	return string < profile->n_strings ? profile->strings[string] : "";
}

const char *sf_profile_frame_name(const struct sf_profile *profile, uint32_t frame)
{
	uint32_t function = frame < profile->n_frames ? profile->frames[frame].function : 0;

	if (function >= profile->n_functions)
		return "";
	return sf_profile_string(profile, profile->functions[function].name);
}

const char *sf_profile_cut(const struct sf_profile *profile)
{
	if (profile->complete)
		return NULL;
	if (profile->bytes_missing)
		return "cut short: the end of the file is missing; this is what is left";
	return profile->being_written
		       ? "not finished: it is still being recorded, and gets its names at the end"
		       : "cut short: stillframe was killed, or could not write on; what was not written by then is missing";
}

/* --- only some of the threads, with the samples and losses that are theirs, and some labels --- */

/* Moves the threads that match to the front; new_numbers[i] says where thread i went. */
static void keep_threads(struct sf_profile *profile, const regex_t *regex, uint32_t *new_numbers)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < profile->n_threads; i++) {
		const char *name = sf_profile_string(profile, profile->threads[i].name);

		new_numbers[i] = DROPPED;
		if (!profile->threads[i].tid || regexec(regex, name, 0, NULL, 0) != 0) /* no id: it stands for no known thread */
			continue;
		new_numbers[i] = kept;
		profile->threads[kept++] = profile->threads[i];
	}
	profile->n_threads = kept;
}

static void keep_samples(struct sf_profile *profile, const uint32_t *new_numbers)
{
	size_t kept = 0;

	for (size_t i = 0; i < profile->n_samples; i++) {
		struct sf_profile_sample sample = profile->samples[i];

		sample.thread = new_numbers[sample.thread];
		if (sample.thread != DROPPED)
			profile->samples[kept++] = sample;
	}
	profile->n_samples = kept;
}

static void keep_losses(struct sf_profile *profile, const uint32_t *new_numbers)
{
	size_t kept = 0;

	for (size_t i = 0; i < profile->n_losses; i++) {
		struct sf_profile_loss loss = profile->losses[i];

		if (loss.thread == UINT32_MAX) /* of no known thread */
			continue;
		loss.thread = new_numbers[loss.thread];
		if (loss.thread != DROPPED)
			profile->losses[kept++] = loss;
	}
	profile->n_losses = kept;
}

bool sf_threads_regex(const char *threads, regex_t *ret, struct sf_error *err)
{
	int code = regcomp(ret, threads, REG_EXTENDED | REG_NOSUB);
	char reason[128];

	if (code == 0)
		return true;
	regerror(code, ret, reason, sizeof(reason));
	return sf_fail(err, SF_E_INPUT, "--threads: \"%.100s\" is not a regular expression: %s", threads, reason);
}

static bool filter_threads(struct sf_profile *profile, const char *threads, struct sf_error *err)
{
	SF_CLEANUP(free) uint32_t *new_numbers = NULL;
	regex_t regex;

	if (!sf_threads_regex(threads, &regex, err))
		return false;
	new_numbers = calloc((size_t)profile->n_threads + 1, sizeof(*new_numbers));
	if (new_numbers) {
		keep_threads(profile, &regex, new_numbers);
		keep_samples(profile, new_numbers);
		keep_losses(profile, new_numbers);
	}
	regfree(&regex);
	if (!new_numbers)
		return sf_fail_memory(err);
	if (profile->n_threads)
		return true;
	sf_fail(err, SF_E_INPUT, "no thread's name matches \"%.200s\"", threads);
	return sf_fail_hint(err, "`stillframe report --by thread` lists the names.");
}

/* `wanted` is KEY or KEY=VALUE; keys may have an = of their own. */
static bool label_matches(const struct sf_profile *profile, const struct sf_profile_label *label,
			  const char *wanted)
{
	const char *key = sf_profile_string(profile, label->key);
	const char *value = sf_profile_string(profile, label->value);
	size_t size = strlen(key);

	if (strncmp(wanted, key, size) != 0)
		return false;
	return wanted[size] == 0 || (wanted[size] == '=' && strcmp(wanted + size + 1, value) == 0);
}

static bool filter_label(struct sf_profile *profile, const char *wanted, struct sf_error *err)
{
	SF_CLEANUP(free) bool *matches = calloc((size_t)profile->n_labels + 1, sizeof(*matches));
	size_t kept = 0;

	if (!matches)
		return sf_fail_memory(err);
	for (uint32_t i = 0; i < profile->n_labels; i++)
		matches[i + 1] = label_matches(profile, &profile->labels[i], wanted);
	for (size_t i = 0; i < profile->n_samples; i++) {
		if (matches[profile->samples[i].label] || matches[profile->samples[i].second_label])
			profile->samples[kept++] = profile->samples[i];
	}
	if (!kept) {
		sf_fail(err, SF_E_INPUT, "no sample carries the label \"%.200s\"", wanted);
		return sf_fail_hint(err, "`stillframe report --by label` lists the labels.");
	}
	profile->by_label = true;
	profile->n_samples = kept;
	profile->n_losses = 0;
	for (uint32_t i = 0; i < profile->n_threads; i++)
		profile->threads[i].cpu_counted_ns = 0;
	return true;
}

bool sf_profile_filter(struct sf_profile *profile, const struct sf_filter *filter,
		       struct sf_error *err)
{
	if (filter->threads && !filter_threads(profile, filter->threads, err))
		return false;
	return !filter->label || filter_label(profile, filter->label, err);
}
