/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The innermost frames of samples that are left out: those of managed functions that the runtime has to get to what is
 * sampled, and of native code, up to the next managed function. A function is known by its name, which may come after
 * the sample.
 */
#include "recording/writer.h"

#include <string.h>

#include "frozen/trace.h"

#define MAX_HELD 4096        /* samples that wait for names */

enum role { OF_PROGRAM, LEFT_OUT, NATIVE, NOT_TOLD };

static enum role role_of(const struct sf_recording *recording, uint32_t frame)
{
	const struct sf_frame_key *key = sf_intern_get(recording->frames, frame, NULL);
	const char *name;

	if (!key || !sf_kind_is_managed(key->kind) || key->kind == SF_KIND_STUB)
		return NATIVE;
	if (!sf_recording_place_name(recording, key->address, &name))
		return recording->complete || recording->samples.n > MAX_HELD ? OF_PROGRAM : NOT_TOLD;
	return strncmp(name, recording->left_out, strlen(recording->left_out)) == 0 ? LEFT_OUT : OF_PROGRAM;
}

void sf_recording_leave_out(struct sf_recording *recording, const char *start)
{
	recording->left_out = start;
}

bool sf_recording_innermost(const struct sf_recording *recording, uint32_t stack, uint32_t *ret)
{
	bool any = false;

	*ret = stack;
	for (uint32_t number = recording->left_out ? stack : 0; number;) {
		const struct sf_stack_key *key = sf_intern_get(recording->stacks, number, NULL);
		const enum role role = role_of(recording, key->frame);

		any |= role == LEFT_OUT;
		if (role == NOT_TOLD)
			return false;
		if (role == OF_PROGRAM) {
			*ret = any ? number : stack;
			return true;
		}
		number = key->parent;
	}
	return true;
}
