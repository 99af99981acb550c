/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Numbers with units: 10ms, 1.5s, 199hz. Integers all the way, so that 0.1 s is 100,000,000 ns
 * and an overflow is noticed instead of rounded.
 */
#include "base/options.h"

#include <string.h>

/* Nine digits behind the point: nothing here is stored finer than a thousand-millionth of its unit. */
#define MAX_SCALE 1000000000u

struct unit {
	const char *name;
	uint64_t factor; /* to the stored unit */
};

static const struct unit time_units[] = {
	{ "", 1000000000u }, { "ns", 1 },		  { "us", 1000 },
	{ "ms", 1000000 },   { "s", 1000000000u },	  { "m", 60 * 1000000000ull },
	{ "min", 60 * 1000000000ull }, { "h", 3600 * 1000000000ull }, { NULL, 0 },
};

static const struct unit rate_units[] = {
	{ "", 1000 },	       { "hz", 1000 },	    { "Hz", 1000 },
	{ "khz", 1000 * 1000 }, { "kHz", 1000 * 1000 }, { NULL, 0 },
};

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

/* The end of the digits at `text`; NULL: there is none, or the number is too large. */
static const char *read_digits(const char *text, uint64_t *ret)
{
	const char *at = text;

	for (*ret = 0; is_digit(*at); at++) {
		if (__builtin_mul_overflow(*ret, 10u, ret) ||
		    __builtin_add_overflow(*ret, (uint64_t)(*at - '0'), ret))
			return NULL;
	}
	return at > text ? at : NULL;
}

static bool parse_with_unit(const char *text, const struct unit *units, uint64_t *ret)
{
	uint64_t whole, fraction = 0, scale = 1;
	const char *end = read_digits(text, &whole);

	if (end && *end == '.') {
		const char *start = end + 1;

		end = read_digits(start, &fraction);
		for (const char *at = start; end && at < end && scale <= MAX_SCALE; at++)
			scale *= 10;
	}
	for (const struct unit *unit = units; end && scale <= MAX_SCALE && unit->name; unit++) {
		const unsigned __int128 value = (unsigned __int128)whole * unit->factor +
						(unsigned __int128)fraction * unit->factor / scale;

		if (strcmp(end, unit->name) == 0 && value <= UINT64_MAX) {
			*ret = (uint64_t)value;
			return true;
		}
	}
	return false;
}

bool sf_parse_time(const char *text, uint64_t *ns_ret, struct sf_error *err)
{
	if (!parse_with_unit(text, time_units, ns_ret))
		return sf_fail(err, SF_E_INPUT, "'%s' is not a time, such as 10ms, 30s or 2m",
			       text);
	return true;
}

bool sf_parse_rate(const char *text, uint64_t *mhz_ret, struct sf_error *err)
{
	if (!parse_with_unit(text, rate_units, mhz_ret))
		return sf_fail(err, SF_E_INPUT, "'%s' is not a rate, such as 199, 199hz or 1khz",
			       text);
	return true;
}

bool sf_parse_count(const char *text, uint64_t maximum, uint64_t *ret)
{
	const char *end = read_digits(text, ret);

	return end && !*end && *ret <= maximum;
}
