/* SPDX-License-Identifier: Apache-2.0 */
/* Recognises the methods of a suspension by their names, and keeps what was found. */
#include "agent/coreclr/clr_suspension.h"

#include <stddef.h>
#include <string.h>

#include "agent/coreclr/clr_guid.h"
#include "frozen/memory/hash.h"

#define NAME_UNITS 256
#define N_KNOWN 4096u                /* 2 to the power of 12: the bits of the hash */
#define WINDOW 8u

/* To add one: a line. CoreCLR: System.Private.CoreLib, Thread.CoreCLR.cs. */
static const struct {
	const char *type, *part;     /* the whole name of the type; a part of the method's name */
} methods[] = {
	{ "System.Threading.Thread", "PollGC" },
};

/* A function that is freed leaves its place to another one, which cannot be of the class library: none of those is freed. */
static struct {
	uint64_t function;           /* 0: free */
	bool serves;
} known[N_KNOWN];

/* Characters beyond ASCII become '?': no name above has one. */
static void to_ascii(const uint16_t *units, uint32_t n, char ret[NAME_UNITS])
{
	uint32_t i = 0;

	for (; i < n && i < NAME_UNITS - 1 && units[i]; i++)
		ret[i] = (char)(units[i] < 128 ? units[i] : '?');
	ret[i] = 0;
}

static bool read_names(struct sf_clr_metadata *metadata, uint32_t token, char type_ret[NAME_UNITS],
		       char method_ret[NAME_UNITS])
{
	uint16_t units[NAME_UNITS];
	uint32_t type = 0, n = 0;

	if (sf_clr_method_name(metadata, token, &type, units, NAME_UNITS, &n, NULL, NULL, NULL, NULL, NULL) < 0)
		return false;
	to_ascii(units, n, method_ret);
	n = 0;
	if (sf_clr_type_name(metadata, type, units, NAME_UNITS, &n, NULL, NULL) < 0)
		return false;
	to_ascii(units, n, type_ret);
	return true;
}

static bool look_up(struct sf_clr_info *info, uint64_t function)
{
	char type[NAME_UNITS], method[NAME_UNITS];
	void *metadata = NULL;
	uint32_t token = 0;
	bool serves = false;

	if (sf_clr_get_metadata(info, (uintptr_t)function, sf_clr_metadata_id, &metadata, &token) < 0 || !metadata)
		return false;
	if (read_names(metadata, token, type, method)) {
		for (size_t i = 0; i < sizeof(methods) / sizeof(*methods); i++)
			serves |= strcmp(type, methods[i].type) == 0 && strstr(method, methods[i].part);
	}
	sf_clr_release(metadata);
	return serves;
}

bool sf_clr_serves_suspension(struct sf_clr_info *info, uint64_t function)
{
	const uint64_t first = sf_hash(function, 12);

	for (unsigned i = 0; i < WINDOW; i++) {
		const size_t at = (first + i) % N_KNOWN;

		if (known[at].function == function)
			return known[at].serves;
		if (known[at].function && i + 1 < WINDOW)
			continue;
		known[at].serves = look_up(info, function);
		known[at].function = function;
		return known[at].serves;
	}
	return false;
}
