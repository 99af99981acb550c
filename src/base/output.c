/* SPDX-License-Identifier: Apache-2.0 */
/* Properties of the output (is it a terminal, how wide is it), and numbers formatted for reading. */
#include "base/output.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define NO_WIDTH 1000000 /* of a pipe and a file: longer than any name */

/* COLUMNS is what a shell has for its terminal (POSIX, "Environment Variables"). */
static int width_of(int fd)
{
	const char *given = getenv("COLUMNS");
	const int columns = given ? atoi(given) : 0;
	struct winsize size;

	if (ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_col > 0)
		return size.ws_col;
	if (columns > 0 && columns < NO_WIDTH)
		return columns;
	return isatty(fd) ? SF_COLUMNS : NO_WIDTH;
}

/* https://no-color.org: set and not empty means no colour. */
static bool wants_colour(int fd)
{
	const char *no_color = getenv("NO_COLOR");
	const char *term = getenv("TERM");

	return isatty(fd) && !(no_color && *no_color) && term && strcmp(term, "dumb") != 0;
}

struct sf_output sf_output_for(FILE *file)
{
	int fd = fileno(file);

	return (struct sf_output){
		.file = file,
		.colour = fd >= 0 && wants_colour(fd),
		.width = fd >= 0 ? width_of(fd) : SF_COLUMNS,
	};
}

const char *sf_colour(const struct sf_output *output, enum sf_colour colour)
{
	static const char *const sequences[] = {
		[SF_PLAIN] = "\033[0m",  [SF_BOLD] = "\033[1m",	   [SF_DIM] = "\033[2m",
		[SF_RED] = "\033[31m",	 [SF_GREEN] = "\033[32m",  [SF_YELLOW] = "\033[33m",
		[SF_BLUE] = "\033[34m",	 [SF_MAGENTA] = "\033[35m", [SF_CYAN] = "\033[36m",
	};

	return output->colour ? sequences[colour] : "";
}

void sf_print_in(const struct sf_output *output, enum sf_colour colour, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	fputs(sf_colour(output, colour), output->file);
	vfprintf(output->file, format, args);
	fputs(sf_colour(output, SF_PLAIN), output->file);
	va_end(args);
}

/* How values from `minimum` on are shown. */
struct scale {
	uint64_t minimum, factor;
	unsigned decimals;
	const char *unit;
};

static const struct scale time_scales[] = {
	{ 10000000000u, 1000000000u, 1, "s" },
	{ 1000000000u, 1000000000u, 3, "s" },
	{ 1000000, 1000000, 1, "ms" },
	{ 1000, 1000, 1, "us" },
	{ 0, 1, 0, "ns" },
};

static const struct scale byte_scales[] = {
	{ 1000000000000u, 1000000000000u, 1, "TB" },
	{ 1000000000u, 1000000000u, 1, "GB" },
	{ 1000000, 1000000, 1, "MB" },
	{ 1000, 1000, 1, "kB" },
	{ 0, 1, 0, "B" },
};

/* Digits are cut and not rounded, so that 999.99 ms is never shown as 1000.0 ms. */
static char *format_scaled(char ret[32], uint64_t value, const struct scale *scale)
{
	uint64_t rest = value % scale->factor, step = scale->factor;

	for (unsigned i = 0; i < scale->decimals; i++)
		step /= 10;
	if (scale->decimals)
		snprintf(ret, 32, "%" PRIu64 ".%0*" PRIu64 " %s", value / scale->factor,
			 (int)scale->decimals, rest / step, scale->unit);
	else
		snprintf(ret, 32, "%" PRIu64 " %s", value, scale->unit);
	return ret;
}

static char *format_with(char ret[32], uint64_t value, const struct scale *scale)
{
	while (value < scale->minimum)
		scale++;
	return format_scaled(ret, value, scale);
}

char *sf_format_time(char ret[32], uint64_t ns)
{
	return format_with(ret, ns, time_scales);
}

char *sf_format_bytes(char ret[32], uint64_t bytes)
{
	return format_with(ret, bytes, byte_scales);
}

char *sf_format_count(char ret[32], uint64_t count)
{
	char digits[24];
	int n = snprintf(digits, sizeof(digits), "%" PRIu64, count);
	char *out = ret;

	for (int i = 0; i < n; i++) {
		if (i && (n - i) % 3 == 0)
			*out++ = ',';
		*out++ = digits[i];
	}
	*out = 0;
	return ret;
}
