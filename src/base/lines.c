/* SPDX-License-Identifier: Apache-2.0 */
/* Reads a text file into one buffer, which grows to its longest line. */
#include "base/lines.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define FIRST_ROOM 8192u

/* Room for more behind what is there, and for a 0. */
static bool make_room(struct sf_lines *lines)
{
	const size_t size = lines->end - lines->start;
	char *larger;

	if (lines->start)
		memmove(lines->text, lines->text + lines->start, size);
	lines->start = 0;
	lines->end = size;
	if (size + 1 < lines->room)
		return true;
	larger = realloc(lines->text, lines->room ? 2 * lines->room : FIRST_ROOM);
	if (!larger)
		return false;
	lines->room = lines->room ? 2 * lines->room : FIRST_ROOM;
	lines->text = larger;
	return true;
}

static bool read_more(struct sf_lines *lines)
{
	ssize_t n;

	if (lines->is_last || !make_room(lines))
		return false;
	do
		n = read(lines->fd, lines->text + lines->end, lines->room - lines->end - 1);
	while (n < 0 && errno == EINTR);
	lines->is_last = n <= 0;
	lines->end += n > 0 ? (size_t)n : 0;
	return n > 0;
}

/* The newline that ends the next line; NULL: the rest of the file has none. */
static char *find_end(struct sf_lines *lines)
{
	size_t looked = 0;
	char *newline = NULL;

	while (!newline) {
		const size_t size = lines->end - lines->start;

		newline = size > looked ? memchr(lines->text + lines->start + looked, '\n', size - looked) : NULL;
		looked = size;
		if (!newline && !read_more(lines))
			break;
	}
	return newline;
}

char *sf_lines_next(struct sf_lines *lines)
{
	char *newline = find_end(lines);
	char *line = lines->text + lines->start;

	if (!newline && (!lines->is_last || lines->start == lines->end))
		return NULL;
	if (!newline)
		newline = lines->text + lines->end;
	*newline = 0;
	lines->start = (size_t)(newline - lines->text) + (newline < lines->text + lines->end);
	return line;
}

void sf_lines_deinit(struct sf_lines *lines)
{
	free(lines->text);
	lines->text = NULL;
}
