/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Command-line options: one const table per command drives parsing, --help, and the manual
 * page. Units are part of a value (10ms, 199hz, 30s); help says the default.
 */
#ifndef SF_BASE_OPTIONS_H
#define SF_BASE_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/error.h"

enum sf_option_kind {
	SF_OPTION_FLAG,    /* bool: no value */
	SF_OPTION_STRING,  /* const char *: points into argv */
	SF_OPTION_TIME,    /* uint64_t, nanoseconds: 10ms, 30s, 2m; a bare number is seconds */
	SF_OPTION_RATE,    /* uint64_t, thousandths of a hertz: 199, 199hz, 1khz */
	SF_OPTION_COUNT,   /* uint32_t */
	SF_OPTION_PID,     /* int32_t, > 0 */
	SF_OPTION_PIDS,    /* struct sf_pids: 1,2,3; also as the words behind it, and by several options */
	SF_OPTION_CHOICE,  /* int: index into choices */
	SF_OPTION_STRINGS, /* struct sf_strings: by several options */
};

#define SF_MAX_PIDS 1024

/* Process numbers, each once, in the order in which they were given. */
struct sf_pids {
	uint32_t n;
	int32_t items[SF_MAX_PIDS];
};

#define SF_MAX_STRINGS 16

/* Texts in the order in which they were given; they point into argv. */
struct sf_strings {
	uint32_t n;
	const char *items[SF_MAX_STRINGS];
};

struct sf_option {
	const char *name;       /* without the dashes */
	char letter;            /* 0: none */
	enum sf_option_kind kind;
	size_t offset;          /* where the value goes in the command's struct */
	const char *argument;   /* shown in help: "PID" */
	const char *help;       /* with the default in it */
	const char *const *choices; /* SF_OPTION_CHOICE: NULL at the end */
	uint64_t minimum, maximum;  /* of numbers, in the stored unit; maximum 0: none */
	bool as_text;           /* the value is checked, and stored as const char *: "" for a flag */
};

struct sf_command {
	const char *name;
	const char *summary;    /* one line */
	const char *usage;      /* behind the name: "[-p PID | -- COMMAND...]" */
	const char *details;    /* paragraphs for --help and the manual page, or NULL */
	const char *(*make_details)(void); /* instead: paragraphs that are made at run time */
	const char *examples;   /* one command a line, or NULL */
	const struct sf_option *options; /* name NULL at the end */
	const struct sf_option *(*make_options)(void); /* instead: a table that is made at run time */
	bool takes_command;     /* everything from the first word that is no option is left alone */
	int (*run)(int argc, char **argv); /* the command's own arguments, argv[0] its name */
};

/* The table of a command. */
const struct sf_option *sf_options_of(const struct sf_command *command);

/*
 * Parses argv (argv[0] is the command's name) into the struct at `ret`, which holds the
 * defaults. *rest becomes the index of the first argument that is no option. False and a message
 * for a user on bad usage.
 */
bool sf_options_parse(const struct sf_command *command, int argc, char **argv, void *ret,
		      int *rest, struct sf_error *err);

/* The --help text, at most 80 columns; the manual page in mdoc-free man(7) form. */
void sf_options_help(const struct sf_command *command, FILE *out);
void sf_options_man(const struct sf_command *command, FILE *out);

/* 10ms, 30s, 2m, 1h; a bare number is seconds. */
bool sf_parse_time(const char *text, uint64_t *ns_ret, struct sf_error *err);
/* 199, 199hz, 1khz, 0.5hz, to thousandths of a hertz. */
bool sf_parse_rate(const char *text, uint64_t *mhz_ret, struct sf_error *err);
/* Digits only: no sign, no spaces, no hexadecimal, all of which strtoul would take. */
bool sf_parse_count(const char *text, uint64_t maximum, uint64_t *ret);

#endif
