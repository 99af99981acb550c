/* SPDX-License-Identifier: Apache-2.0 */
/* Recognises the methods of a suspension by their names, and keeps what was found. */
#include "agent/coreclr/clr_suspension.h"

#include <stddef.h>
#include <string.h>

#include "agent/coreclr/clr_method_names.h"
#include "frozen/memory/hash.h"

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

static bool look_up(struct sf_clr_info *info, uint64_t function)
{
	struct sf_clr_method_names names;
	bool serves = false;

	if (!sf_clr_read_method_names(info, function, &names))
		return false;
	for (size_t i = 0; i < sizeof(methods) / sizeof(*methods); i++)
		serves |= strcmp(names.type, methods[i].type) == 0 && strstr(names.method, methods[i].part);
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
