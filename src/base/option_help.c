/* SPDX-License-Identifier: Apache-2.0 */
/* The text made from a command's table of options: --help in 80 columns, and the manual page. */
#include "base/options.h"

#include <string.h>

#include "base/output.h"

#define HELP_COLUMN 26

static size_t line_size(const char *text)
{
	return strcspn(text, "\n");
}

static const char *next_line(const char *text)
{
	text += line_size(text);
	return *text ? text + 1 : text;
}

/* The size of the paragraph at `text`: up to an empty line, or to an indented one. */
static size_t paragraph_size(const char *text)
{
	const char *end = text;

	do
		end = next_line(end);
	while (*end && *end != '\n' && *end != ' ');
	return (size_t)(end - text);
}

static void print_option(FILE *out, const struct sf_option *option)
{
	char left[128];
	char letter[8] = "    ";
	int width;

	if (option->letter)
		snprintf(letter, sizeof(letter), "-%c, ", option->letter);
	width = snprintf(left, sizeof(left), "  %s--%s%s%s", letter, option->name,
			 option->argument ? " " : "", option->argument ? option->argument : "");
	fputs(left, out);
	if (width > HELP_COLUMN - 2) {
		fputc('\n', out);
		width = 0;
	}
	fprintf(out, "%*s", HELP_COLUMN - width, "");
	sf_print_wrapped(out, option->help, strlen(option->help), HELP_COLUMN, HELP_COLUMN);
}

static void print_details(FILE *out, const char *text)
{
	while (*text) {
		size_t size = *text == ' ' ? line_size(text) : paragraph_size(text);

		if (*text == ' ') /* indented lines are shown as they are */
			fprintf(out, "%.*s\n", (int)size, text);
		else if (*text == '\n')
			fputc('\n', out);
		else
			sf_print_wrapped(out, text, size, 0, 0);
		text += *text == '\n' || *text == ' ' ? (size_t)(next_line(text) - text) : size;
	}
}

/* Up to the next space that is not inside of quotes. */
static int shell_word_size(const char *text)
{
	char quote = 0;
	int size = 0;

	for (; text[size] && text[size] != '\n' && (quote || text[size] != ' '); size++) {
		if (quote ? text[size] == quote : text[size] == '\'' || text[size] == '"')
			quote = quote ? 0 : text[size];
	}
	return size;
}

/* Prints a shell command. A long command continues in the next line in such a way that it can be pasted. */
static void print_example(FILE *out, const char *text)
{
	const bool fits = 2 + line_size(text) <= SF_COLUMNS;
	int column = fprintf(out, " ");

	while (*text && *text != '\n') {
		int size = shell_word_size(text);

		if (!fits && column > 8 && column + 1 + size + 2 > SF_COLUMNS)
			column = fprintf(out, " \\\n     ") - 3;
		column += fprintf(out, " %.*s", size, text);
		text += size;
		text += *text == ' ';
	}
	fputc('\n', out);
}

static const char *details_of(const struct sf_command *command)
{
	return command->make_details ? command->make_details() : command->details;
}

void sf_options_help(const struct sf_command *command, FILE *out)
{
	const char *details = details_of(command);

	fprintf(out, "Usage: stillframe %s %s\n\n", command->name, command->usage);
	sf_print_wrapped(out, command->summary, strlen(command->summary), 0, 0);
	if (details) {
		fputc('\n', out);
		print_details(out, details);
	}
	fputs("\nOptions:\n", out);
	for (const struct sf_option *option = sf_options_of(command); option->name; option++)
		print_option(out, option);
	print_option(out, &(struct sf_option){ .name = "help", .letter = 'h',
					       .help = "show this text" });
	if (command->examples) {
		fputs("\nExamples:\n", out);
		for (const char *text = command->examples; *text; text = next_line(text))
			print_example(out, text);
	}
}

/* roff gives meaning to backslashes, to dashes, and to a dot or a quote that begins a line. */
static void print_roff(FILE *out, const char *text, size_t size)
{
	for (size_t i = 0; i < size && text[i]; i++) {
		bool starts = i == 0 || text[i - 1] == '\n';

		if (starts && (text[i] == '.' || text[i] == '\''))
			fputs("\\&", out);
		if (text[i] == '\\')
			fputs("\\e", out);
		else if (text[i] == '-')
			fputs("\\-", out);
		else
			fputc(text[i], out);
	}
}

static void print_roff_line(FILE *out, const char *text, size_t size)
{
	print_roff(out, text, size);
	fputc('\n', out);
}

static void print_man_option(FILE *out, const struct sf_option *option)
{
	fputs(".TP\n\\fB", out);
	if (option->letter)
		fprintf(out, "\\-%c\\fR, \\fB", option->letter);
	fputs("\\-\\-", out);
	print_roff(out, option->name, strlen(option->name));
	fputs("\\fR", out);
	if (option->argument) {
		fputs(" \\fI", out);
		print_roff(out, option->argument, strlen(option->argument));
		fputs("\\fR", out);
	}
	fputc('\n', out);
	print_roff_line(out, option->help, strlen(option->help));
}

static void print_man_details(FILE *out, const char *text)
{
	for (; *text; text = next_line(text)) {
		size_t size = line_size(text);

		if (size == 0)
			fputs(".PP\n", out);
		else
			print_roff_line(out, text, size);
	}
}

static void print_man_examples(FILE *out, const char *text)
{
	fputs(".SH EXAMPLES\n.nf\n", out);
	for (; *text; text = next_line(text))
		print_roff_line(out, text, line_size(text));
	fputs(".fi\n", out);
}

static void print_title(FILE *out, const char *name)
{
	fputs(".TH \"STILLFRAME\\-", out);
	for (; *name; name++)
		fputc(*name >= 'a' && *name <= 'z' ? *name - 'a' + 'A' : *name, out);
	fputs("\" 1\n", out);
}

void sf_options_man(const struct sf_command *command, FILE *out)
{
	const char *details = details_of(command);

	print_title(out, command->name);
	fprintf(out, ".SH NAME\nstillframe\\-%s \\- ", command->name);
	print_roff_line(out, command->summary, strlen(command->summary));
	fprintf(out, ".SH SYNOPSIS\n\\fBstillframe %s\\fR ", command->name);
	print_roff_line(out, command->usage, strlen(command->usage));
	fputs(".SH DESCRIPTION\n", out);
	if (details)
		print_man_details(out, details);
	else
		print_roff_line(out, command->summary, strlen(command->summary));
	fputs(".SH OPTIONS\n", out);
	for (const struct sf_option *option = sf_options_of(command); option->name; option++)
		print_man_option(out, option);
	if (command->examples)
		print_man_examples(out, command->examples);
}
