/* SPDX-License-Identifier: Apache-2.0 */
/* Reads names of methods, and of their types from the outermost one on. */
#include "agent/coreclr/clr_method_names.h"

#include <stddef.h>

#include "base/text.h"

#define NAME_UNITS 512
#define MAX_OUTER 16         /* types around a type */

static void put_ascii(struct sf_text *text, const uint16_t *units, uint32_t n, uint16_t end)
{
	for (uint32_t i = 0; i < n && i < NAME_UNITS && units[i] && units[i] != end; i++) {
		const char letter = (char)(units[i] < 128 ? units[i] : '?');

		sf_text_put_n(text, &letter, 1);
	}
}

static bool put_type(struct sf_clr_metadata *metadata, uint32_t type, struct sf_text *text)
{
	uint16_t units[NAME_UNITS];
	uint32_t n = 0;

	if (sf_clr_type_name(metadata, type, units, NAME_UNITS, &n, NULL, NULL) < 0)
		return false;
	put_ascii(text, units, n, '`');
	return true;
}

static bool read_type(struct sf_clr_metadata *metadata, uint32_t type, char ret[SF_CLR_METHOD_NAME])
{
	struct sf_text text = sf_text_in(ret, SF_CLR_METHOD_NAME);
	uint32_t types[MAX_OUTER] = { type };
	unsigned n = 1;
	bool fine = true;

	while (n < MAX_OUTER && sf_clr_outer_type(metadata, types[n - 1], &types[n]) >= 0)
		n++;
	while (fine && n) {
		fine = put_type(metadata, types[--n], &text);
		sf_text_put(&text, fine && n ? "." : "");
	}
	return fine;
}

static bool read_names(struct sf_clr_metadata *metadata, uint32_t token, struct sf_clr_method_names *ret)
{
	struct sf_text text = sf_text_in(ret->method, sizeof(ret->method));
	uint16_t units[NAME_UNITS];
	uint32_t type = 0, n = 0;

	if (sf_clr_method_name(metadata, token, &type, units, NAME_UNITS, &n, NULL, NULL, NULL, NULL, NULL) < 0)
		return false;
	put_ascii(&text, units, n, 0);
	return read_type(metadata, type, ret->type);
}

bool sf_clr_read_method_names(struct sf_clr_info *info, uint64_t function, struct sf_clr_method_names *ret)
{
	void *metadata = NULL;
	uint32_t token = 0;
	bool fine;

	if (sf_clr_get_metadata(info, (uintptr_t)function, sf_clr_metadata_id, &metadata, &token) < 0 || !metadata)
		return false;
	fine = read_names(metadata, token, ret);
	sf_clr_release(metadata);
	return fine;
}
