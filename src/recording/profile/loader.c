/* SPDX-License-Identifier: Apache-2.0 */
/* The parts that the tables of a recording share while they are loaded: each text and each function is kept once. */
#include "recording/profile/loader.h"

uint32_t sf_loader_string(struct sf_loader *loader, const char *text)
{
	uint32_t number;

	if (!*text)
		return 0;
	number = sf_intern_string(loader->strings, text);
	return number ? number : UINT32_MAX;
}

uint32_t sf_loader_function(struct sf_loader *loader, const struct sf_profile_function *form)
{
	return sf_intern_add(loader->functions, form, sizeof(*form), NULL);
}
