/* SPDX-License-Identifier: Apache-2.0 */
/* Writing for people: colour on a terminal only, widths, times and counts in words. */
#ifndef SF_BASE_OUTPUT_H
#define SF_BASE_OUTPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum sf_colour {
	SF_PLAIN, SF_BOLD, SF_DIM, SF_RED, SF_GREEN, SF_YELLOW, SF_BLUE, SF_MAGENTA, SF_CYAN
};

struct sf_output {
	FILE *file;
	bool  colour;  /* a terminal, NO_COLOR unset, TERM not "dumb" */
	int   width;   /* columns: the terminal's, or COLUMNS=; in a pipe or a file without that so many that nothing is cut */
};

struct sf_output sf_output_for(FILE *file);

/* The escape sequence that starts a colour; "" without colour. SF_PLAIN ends it. */
const char *sf_colour(const struct sf_output *output, enum sf_colour colour);

/* printf in a colour. */
__attribute__((format(printf, 3, 4))) void sf_print_in(const struct sf_output *output, enum sf_colour colour,
						       const char *format, ...);

/* "1.234 s", "12.3 ms", "4.5 us"; and 29,871. `ret` has room for 32 bytes; returns it. */
char *sf_format_time(char ret[32], uint64_t ns);
char *sf_format_count(char ret[32], uint64_t count);
char *sf_format_bytes(char ret[32], uint64_t bytes);

#define SF_COLUMNS 80 /* of text that is not made for a terminal of known width */

/*
 * Prints the words of `text` from `column` on, broken at SF_COLUMNS; each further line is indented.
 */
void sf_print_wrapped(FILE *file, const char *text, size_t size, int column, int indent);

/*
 * Prints text cut to `columns` with "…" in its middle where it is longer; counts UTF-8 characters.
 */
void sf_print_cut(FILE *file, const char *text, int columns);

/*
 * Cleans text from outside: names of functions, files and threads, and messages. Such text is cleaned once,
 * where it is read, and is plain from there on. These become '?': control characters (C0, DEL, C1), invalid
 * UTF-8, and characters that change the direction of writing or end a line (U+2028 to U+202E, U+2066 to
 * U+2069). A path that is needed to open a file stays as it is; only the copy for display is cleaned.
 * sf_fail (base/error.h) cleans the message that it makes.
 */
void sf_sanitize(char *text);

/* The same for a text that is shown only here, such as a path that the user gave. */
void sf_print_clean(FILE *file, const char *text);

/* A word for the shell, as it is: between quotes, unless it is plain. */
void sf_print_word(FILE *file, const char *word);

/* Whether `text` is clean. A tab is. */
bool sf_is_text(const char *text);

#endif
