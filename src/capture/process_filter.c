/* SPDX-License-Identifier: Apache-2.0 */
/* The conditions of --filter. */
#include "capture/process_filter.h"

#include <pwd.h>
#include <string.h>

static bool add_name(struct sf_process_filter *filter, const char *text, struct sf_error *err)
{
	if (regcomp(&filter->conditions[filter->n].name, text, REG_EXTENDED | REG_NOSUB) != 0)
		return sf_fail(err, SF_E_INPUT, "--filter: '%.100s' is not a regular expression", text);
	filter->n++;
	return true;
}

static bool add_user(struct sf_process_filter *filter, const char *text, struct sf_error *err)
{
	const struct passwd *entry;
	uint64_t user;

	if (!sf_parse_count(text, UINT32_MAX - 1, &user)) {
		entry = getpwnam(text);
		if (!entry)
			return sf_fail(err, SF_E_INPUT, "--filter: there is no user '%.60s'", text);
		user = entry->pw_uid;
	}
	filter->conditions[filter->n].is_user = true;
	filter->conditions[filter->n++].user = (uint32_t)user;
	return true;
}

bool sf_process_filter_init(struct sf_process_filter *filter, const struct sf_strings *texts, struct sf_error *err)
{
	*filter = (struct sf_process_filter){ 0 };
	for (uint32_t i = 0; i < texts->n; i++) {
		const char *text = texts->items[i];
		bool fine;

		if (strncmp(text, "name=", 5) == 0)
			fine = add_name(filter, text + 5, err);
		else if (strncmp(text, "user=", 5) == 0)
			fine = add_user(filter, text + 5, err);
		else
			fine = sf_fail(err, SF_E_INPUT, "--filter: '%.60s' is neither name=REGEX nor user=NAME", text);
		if (!fine)
			return false;
	}
	return true;
}

void sf_process_filter_deinit(struct sf_process_filter *filter)
{
	for (uint32_t i = 0; i < filter->n; i++) {
		if (!filter->conditions[i].is_user)
			regfree(&filter->conditions[i].name);
	}
	filter->n = 0;
}

bool sf_process_filter_fits(const struct sf_process_filter *filter, const char *name, uint32_t user)
{
	for (uint32_t i = 0; filter && i < filter->n; i++) {
		if (filter->conditions[i].is_user ? filter->conditions[i].user != user
						  : regexec(&filter->conditions[i].name, name, 0, NULL, 0) != 0)
			return false;
	}
	return true;
}
