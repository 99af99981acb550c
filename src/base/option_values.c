/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Numbers with units: 10ms, 1.5s, 199hz. Integers all the way, so that 0.1 s is 100,000,000 ns
 * and an overflow is noticed instead of rounded.
 */
#include "base/options.h"

#include <string.h>

/* More would be lost: nothing here is stored finer than a thousand-millionth of its unit. */
#define MAX_FRACTION_DIGITS 9

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

/* A decimal number taken apart: whole + fraction / scale. */
struct decimal {
	uint64_t whole, fraction, scale;
	const char *end;
};

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static bool read_whole(const char **text, uint64_t *ret)
{
	uint64_t value = 0;

	for (; is_digit(**text); (*text)++) {
		if (__builtin_mul_overflow(value, 10u, &value) ||
		    __builtin_add_overflow(value, (uint64_t)(**text - '0'), &value))
			return false;
	}
	*ret = value;
	return true;
}

static bool read_fraction(const char *text, struct decimal *ret)
{
	const char *start = text;

	for (; is_digit(*text); text++) {
		if (text - start >= MAX_FRACTION_DIGITS)
			return false;
		ret->fraction = ret->fraction * 10 + (uint64_t)(*text - '0');
		ret->scale *= 10;
	}
	ret->end = text;
	return text > start;
}

static bool read_decimal(const char *text, struct decimal *ret)
{
	*ret = (struct decimal){ .scale = 1 };
	if (!is_digit(*text) || !read_whole(&text, &ret->whole))
		return false;
	ret->end = text;
	return *text != '.' || read_fraction(text + 1, ret);
}

static bool apply_unit(const struct decimal *decimal, uint64_t factor, uint64_t *ret)
{
	uint64_t part = (uint64_t)((unsigned __int128)decimal->fraction * factor / decimal->scale);
	uint64_t value;

	if (__builtin_mul_overflow(decimal->whole, factor, &value) ||
	    __builtin_add_overflow(value, part, &value))
		return false;
	*ret = value;
	return true;
}

static bool parse_with_unit(const char *text, const struct unit *units, uint64_t *ret)
{
	struct decimal decimal;

	if (!read_decimal(text, &decimal))
		return false;
	for (const struct unit *unit = units; unit->name; unit++) {
		if (strcmp(decimal.end, unit->name) == 0)
			return apply_unit(&decimal, unit->factor, ret);
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
