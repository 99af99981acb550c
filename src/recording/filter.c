/* SPDX-License-Identifier: Apache-2.0 */
/* Keeping only some of a profile's threads, with the samples and losses that are theirs. */
#include <regex.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "recording/profile.h"

#define DROPPED UINT32_MAX

/* Moves the threads that match to the front; new_numbers[i] says where thread i went. */
static void keep_threads(struct sf_profile *profile, const regex_t *regex, uint32_t *new_numbers)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < profile->n_threads; i++) {
		const char *name = sf_profile_string(profile, profile->threads[i].name);

		new_numbers[i] = DROPPED;
		if (regexec(regex, name, 0, NULL, 0) != 0)
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

bool sf_profile_filter(struct sf_profile *profile, const struct sf_filter *filter,
		       struct sf_error *err)
{
	SF_CLEANUP(free) uint32_t *new_numbers = NULL;
	regex_t regex;
	int code;

	if (!filter->threads)
		return true;
	code = regcomp(&regex, filter->threads, REG_EXTENDED | REG_NOSUB);
	if (code != 0) {
		char reason[128];

		regerror(code, &regex, reason, sizeof(reason));
		return sf_fail(err, SF_E_INPUT, "\"%s\" is no regular expression: %s",
			       filter->threads, reason);
	}
	new_numbers = calloc((size_t)profile->n_threads + 1, sizeof(*new_numbers));
	if (new_numbers) {
		keep_threads(profile, &regex, new_numbers);
		keep_samples(profile, new_numbers);
		keep_losses(profile, new_numbers);
	}
	regfree(&regex);
	return new_numbers || sf_fail_memory(err);
}
