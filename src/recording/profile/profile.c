/* SPDX-License-Identifier: Apache-2.0 */
/* Small functions on a loaded profile: names, weights and its release. */
#include "recording/profile/profile.h"

#include <stdlib.h>

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
