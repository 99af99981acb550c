/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which processes of many are sampled (--filter): those that fit all conditions. Decided when a process comes into
 * sight and when it runs another program, before anything of it is read or walked.
 */
#ifndef SF_CAPTURE_PROCESS_FILTER_H
#define SF_CAPTURE_PROCESS_FILTER_H

#include <regex.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/options.h"

struct sf_process_filter {
	struct {
		bool is_user;
		uint32_t user;
		regex_t name;
	} conditions[SF_MAX_STRINGS];
	uint32_t n;
};

/*
 * "name=REGEX" (POSIX extended, of the process's name), "user=NAME" and "user=UID" (the effective one).
 * sf_process_filter_deinit in any case.
 */
bool sf_process_filter_init(struct sf_process_filter *filter, const struct sf_strings *texts, struct sf_error *err);
void sf_process_filter_deinit(struct sf_process_filter *filter);

/* Whether a process of this name and user fits. NULL: there are no conditions. */
bool sf_process_filter_fits(const struct sf_process_filter *filter, const char *name, uint32_t user);

#endif
