/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Text that came from elsewhere, made fit for a terminal. A function may be called anything:
 * names are checked as UTF-8 by hand, because the locale of the user is not that of the file.
 */
#include "base/output.h"

#include <stdlib.h>
#include <string.h>

#define ELLIPSIS "\xe2\x80\xa6"

/* The smallest character that needs so many bytes: less is an overlong form. */
static const uint32_t smallest[] = { 0, 0, 0x80, 0x800, 0x10000 };

static size_t size_from_first(unsigned char c)
{
	if (c < 0x80)
		return 1;
	if (c >= 0xc0 && c < 0xe0)
		return 2;
	if (c >= 0xe0 && c < 0xf0)
		return 3;
	if (c >= 0xf0 && c < 0xf8)
		return 4;
	return 0;
}

/* Code points that a terminal or a page interprets instead of showing them, and those that are no characters. Ascending. */
static const struct {
	uint32_t first, last;
} unprintable[] = {
	{ 0x0, 0x8 },       { 0xa, 0x1f },      { 0x7f, 0x9f },       /* controls; a tab is fine */
	{ 0x2028, 0x202e },                                           /* ends of lines, directions */
	{ 0x2066, 0x2069 },                                           /* directions */
	{ 0xd800, 0xdfff }, { 0x110000, UINT32_MAX },
};

static bool is_printable(uint32_t c)
{
	for (size_t i = 0; i < sizeof(unprintable) / sizeof(unprintable[0]); i++) {
		if (c <= unprintable[i].last)
			return c < unprintable[i].first;
	}
	return true;
}

/* The bytes of the printable character at `text`, or 0 where there is none. */
static size_t character_size(const char *text)
{
	const unsigned char *p = (const unsigned char *)text;
	size_t size = size_from_first(*p);
	uint32_t c = size == 1 ? *p : *p & (0x7fu >> size);

	for (size_t i = 1; i < size; i++) {
		if ((p[i] & 0xc0) != 0x80) /* the final zero too */
			return 0;
		c = c << 6 | (p[i] & 0x3f);
	}
	return size && c >= smallest[size] && is_printable(c) ? size : 0;
}

void sf_sanitize(char *text)
{
	while (*text) {
		size_t size = character_size(text);

		if (!size) {
			*text = '?';
			size = 1;
		}
		text += size;
	}
}

void sf_print_clean(FILE *file, const char *text)
{
	char *clean = strdup(text);

	if (clean)
		sf_sanitize(clean);
	fputs(clean ? clean : "?", file);
	free(clean);
}

void sf_print_word(FILE *file, const char *word)
{
	const bool plain = *word && !word[strspn(word, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789/._+-")];

	if (plain) {
		fputs(word, file);
		return;
	}
	putc('\'', file);
	for (; *word; word++)
		fputs(*word == '\'' ? "'\\''" : (char[2]){ *word }, file);
	putc('\'', file);
}

bool sf_is_text(const char *text)
{
	while (*text) {
		size_t size = character_size(text);

		if (!size)
			return false;
		text += size;
	}
	return true;
}

static bool continues(char c)
{
	return ((unsigned char)c & 0xc0) == 0x80;
}

static size_t count_characters(const char *text)
{
	size_t n = 0;

	for (; *text; text++)
		n += !continues(*text);
	return n;
}

static const char *skip_characters(const char *text, size_t n)
{
	while (*text && n--) {
		do
			text++;
		while (continues(*text));
	}
	return text;
}

void sf_print_cut(FILE *file, const char *text, int columns)
{
	size_t n = count_characters(text);
	size_t width = columns > 0 ? (size_t)columns : 0;
	size_t left = width / 2;

	if (n <= width) {
		fputs(text, file);
		return;
	}
	if (width == 0)
		return;
	fwrite(text, 1, (size_t)(skip_characters(text, left) - text), file);
	fputs(ELLIPSIS, file);
	fputs(skip_characters(text, n - (width - left - 1)), file);
}

void sf_print_wrapped(FILE *file, const char *text, size_t size, int column, int indent)
{
	const char *end = text + size;
	bool first = true;

	while (text < end) {
		int width = (int)strcspn(text, " \n");

		if (width > end - text)
			width = (int)(end - text);
		if (!first && column + 1 + width > SF_COLUMNS) {
			fprintf(file, "\n%*s", indent, "");
			column = indent;
		} else if (!first) {
			fputc(' ', file);
			column++;
		}
		fwrite(text, 1, (size_t)width, file);
		column += width;
		first = false;
		text += width;
		while (text < end && (*text == ' ' || *text == '\n'))
			text++;
	}
	fputc('\n', file);
}
