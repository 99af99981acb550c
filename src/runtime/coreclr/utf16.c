/* SPDX-License-Identifier: Apache-2.0 */
/* Texts of .NET, which are UTF-16. */
#include "runtime/coreclr/utf16.h"

#define REPLACEMENT 0xfffdu   /* U+FFFD */

/* One UTF-16 unit, or a pair, as UTF-8; returns the bytes. */
static unsigned put_utf8(uint32_t c, char ret[4])
{
	if (c < 0x80) {
		ret[0] = (char)c;
		return 1;
	}
	if (c < 0x800) {
		ret[0] = (char)(0xc0 | c >> 6);
		ret[1] = (char)(0x80 | (c & 63));
		return 2;
	}
	if (c < 0x10000) {
		ret[0] = (char)(0xe0 | c >> 12);
		ret[1] = (char)(0x80 | (c >> 6 & 63));
		ret[2] = (char)(0x80 | (c & 63));
		return 3;
	}
	ret[0] = (char)(0xf0 | c >> 18);
	ret[1] = (char)(0x80 | (c >> 12 & 63));
	ret[2] = (char)(0x80 | (c >> 6 & 63));
	ret[3] = (char)(0x80 | (c & 63));
	return 4;
}

static bool is_high(uint32_t unit)
{
	return unit >= 0xd800 && unit < 0xdc00;
}

static bool is_low(uint32_t unit)
{
	return unit >= 0xdc00 && unit < 0xe000;
}

/*
 * The character that begins with `unit`, at `at`, where there are `n_units`; and its units. Half of a pair is none: it
 * is replaced.
 */
static uint32_t get_utf16(const struct sf_reader *memory, uint64_t at, uint16_t unit, unsigned n_units, unsigned *used_ret)
{
	uint16_t low;

	*used_ret = 1;
	if (!is_high(unit) && !is_low(unit))
		return unit;
	if (!is_high(unit) || n_units < 2 || !sf_read(memory, &low, at + 2, sizeof(low)) || !is_low(low))
		return REPLACEMENT;
	*used_ret = 2;
	return 0x10000 + (((uint32_t)unit - 0xd800) << 10) + (low - 0xdc00u);
}

void sf_clr_read_utf16(const struct sf_reader *memory, uint64_t at, unsigned n_units, char *ret, size_t size)
{
	uint16_t unit;
	size_t n = 0;

	while (n_units && n + 5 < size && sf_read(memory, &unit, at, sizeof(unit)) && unit) {
		unsigned used;

		n += put_utf8(get_utf16(memory, at, unit, n_units, &used), ret + n);
		at += 2 * used;
		n_units -= used;
	}
	ret[n] = 0;
}

/* One character of UTF-8, in the shortest form; returns its bytes, 0: it is none. */
static unsigned get_utf8(const unsigned char *text, uint32_t *ret)
{
	static const uint32_t least[] = { 0, 0, 0x80, 0x800, 0x10000 };
	const unsigned n = text[0] < 0x80   ? 1
			   : text[0] < 0xc0 ? 0
			   : text[0] < 0xe0 ? 2
			   : text[0] < 0xf0 ? 3
			   : text[0] < 0xf8 ? 4
					    : 0;
	uint32_t c = n > 1 ? text[0] & (0x7fu >> n) : text[0];

	for (unsigned i = 1; i < n; i++) {
		if ((text[i] & 0xc0) != 0x80)
			return 0;
		c = c << 6 | (text[i] & 63);
	}
	*ret = c;
	return n && c >= least[n] && c < 0x110000 && (c < 0xd800 || c >= 0xe000) ? n : 0;
}

size_t sf_clr_write_utf16(const char *text, uint16_t *ret, size_t n_units)
{
	size_t n = 0;
	unsigned bytes;
	uint32_t c;

	for (; *text; text += bytes) {
		bytes = get_utf8((const unsigned char *)text, &c);
		if (!bytes || n + 3 > n_units)
			return 0;
		if (c >= 0x10000) {
			ret[n++] = (uint16_t)(0xd800 + ((c - 0x10000) >> 10));
			c = 0xdc00 + ((c - 0x10000) & 0x3ff);
		}
		ret[n++] = (uint16_t)c;
	}
	if (!n_units)
		return 0;
	ret[n++] = 0;
	return n;
}
