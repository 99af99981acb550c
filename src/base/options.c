/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parsing a command line by its table. Options and other arguments may be mixed, as users of
 * getopt_long expect; a command that takes a program to run stops at that program's name, so
 * that `record ls --color` gives --color to ls.
 */
#include "base/options.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "base/output.h"

/* An option as it stands on the command line. */
struct given {
	const struct sf_option *option;
	const char *spelling; /* as the user wrote it, for messages */
	int spelling_size;
	const char *value; /* behind '=' or the letter, or NULL */
};

static size_t least(size_t a, size_t b)
{
	return a < b ? a : b;
}

/* A bound of an option, as a user would write the value: 1hz, 1ms, 16384. */
static char *format_bound(char ret[32], enum sf_option_kind kind, uint64_t bound)
{
	if (kind == SF_OPTION_TIME)
		return sf_format_time(ret, bound);
	if (kind == SF_OPTION_RATE)
		snprintf(ret, 32, "%g hz", (double)bound / 1000);
	else
		snprintf(ret, 32, "%llu", (unsigned long long)bound);
	return ret;
}

static bool set_number(const struct given *given, uint64_t value, uint64_t *ret,
		       struct sf_error *err)
{
	const struct sf_option *option = given->option;
	const bool small = value < option->minimum, large = option->maximum && value > option->maximum;
	char bound[32];

	if (!small && !large) {
		*ret = value;
		return true;
	}
	format_bound(bound, option->kind, small ? option->minimum : option->maximum);
	return sf_fail(err, SF_E_INPUT, "%.*s %s is too %s: the %s is %s", given->spelling_size, given->spelling,
		       given->value, small ? "small" : "large", small ? "least" : "most", bound);
}

/* Puts the option's name in front of a message that mentions only the value. */
static bool name_option(const struct given *given, struct sf_error *err)
{
	char text[sizeof(((struct sf_error *)0)->text)];

	if (!err)
		return false;
	memcpy(text, err->text, sizeof(text));
	return sf_fail(err, SF_E_INPUT, "%.*s: %s", given->spelling_size, given->spelling, text);
}

static bool set_unit(const struct given *given, void *ret, struct sf_error *err)
{
	uint64_t value;
	bool done = given->option->kind == SF_OPTION_TIME ? sf_parse_time(given->value, &value, err)
							  : sf_parse_rate(given->value, &value, err);

	return done ? set_number(given, value, ret, err) : name_option(given, err);
}

static bool set_count(const struct given *given, void *ret, struct sf_error *err)
{
	const struct sf_option *option = given->option;
	uint64_t value;

	if (!sf_parse_count(given->value, UINT32_MAX, &value))
		return sf_fail(err, SF_E_INPUT, "%.*s: '%s' is not a whole number from %llu to %llu",
			       given->spelling_size, given->spelling, given->value, (unsigned long long)option->minimum,
			       (unsigned long long)(option->maximum ? option->maximum : UINT32_MAX));
	if (!set_number(given, value, &value, err))
		return false;
	*(uint32_t *)ret = (uint32_t)value;
	return true;
}

static bool set_pid(const struct given *given, void *ret, struct sf_error *err)
{
	uint64_t value;

	if (!sf_parse_count(given->value, INT32_MAX, &value) || value == 0)
		return sf_fail(err, SF_E_INPUT, "%.*s: '%s' is not a process number",
			       given->spelling_size, given->spelling, given->value);
	*(int32_t *)ret = (int32_t)value;
	return true;
}

static bool add_pid(struct sf_pids *pids, int32_t pid, struct sf_error *err)
{
	for (uint32_t i = 0; i < pids->n; i++) {
		if (pids->items[i] == pid)
			return true;
	}
	if (pids->n == SF_MAX_PIDS)
		return sf_fail(err, SF_E_INPUT, "more than %d processes were given", SF_MAX_PIDS);
	pids->items[pids->n++] = pid;
	return true;
}

/* A list with commas between the numbers. */
static bool set_pids(const struct given *given, void *ret, struct sf_error *err)
{
	const char *word = given->value;

	for (;; word++) {
		const size_t size = strcspn(word, ",");
		struct given one = *given;
		char text[64];
		int32_t pid;

		snprintf(text, sizeof(text), "%.*s", (int)least(size, sizeof(text) - 1), word);
		one.value = text;
		if (!set_pid(&one, &pid, err) || !add_pid(ret, pid, err))
			return false;
		word += size;
		if (!*word)
			return true;
	}
}

static bool set_choice(const struct given *given, void *ret, struct sf_error *err)
{
	const char *const *choices = given->option->choices;
	char list[256] = "";
	size_t used = 0;

	for (int i = 0; choices[i]; i++) {
		if (strcmp(choices[i], given->value) == 0) {
			*(int *)ret = i;
			return true;
		}
		if (used < sizeof(list))
			used += (size_t)snprintf(list + used, sizeof(list) - used, "%s%s",
						 i ? ", " : "", choices[i]);
	}
	return sf_fail(err, SF_E_INPUT, "%.*s: '%s' is none of %s", given->spelling_size,
		       given->spelling, given->value, list);
}

static bool set_string(const struct given *given, void *ret, struct sf_error *err)
{
	(void)err;
	*(const char **)ret = given->value;
	return true;
}

static bool add_string(const struct given *given, void *ret, struct sf_error *err)
{
	struct sf_strings *strings = ret;

	if (strings->n == SF_MAX_STRINGS)
		return sf_fail(err, SF_E_INPUT, "%.*s was given more than %d times", given->spelling_size, given->spelling, SF_MAX_STRINGS);
	strings->items[strings->n++] = given->value;
	return true;
}

static bool set_flag(const struct given *given, void *ret, struct sf_error *err)
{
	(void)given;
	(void)err;
	*(bool *)ret = true;
	return true;
}

typedef bool set_fn(const struct given *given, void *ret, struct sf_error *err);

static set_fn *const setters[] = {
	[SF_OPTION_FLAG] = set_flag,	 [SF_OPTION_STRING] = set_string,
	[SF_OPTION_TIME] = set_unit,	 [SF_OPTION_RATE] = set_unit,
	[SF_OPTION_COUNT] = set_count, [SF_OPTION_PID] = set_pid,
	[SF_OPTION_PIDS] = set_pids,	 [SF_OPTION_CHOICE] = set_choice,
	[SF_OPTION_STRINGS] = add_string,
};

static bool store(const struct given *given, void *ret, struct sf_error *err)
{
	uint64_t checked;

	if (!given->option->as_text)
		return setters[given->option->kind](given, ret, err);
	if (!setters[given->option->kind](given, &checked, err))
		return false;
	*(const char **)ret = given->value ? given->value : "";
	return true;
}

#define MAX_NAME 40

/* Levenshtein's distance of two short strings; large when one is not short. */
static size_t distance(const char *a, size_t a_size, const char *b)
{
	size_t b_size = strlen(b);
	size_t row[MAX_NAME + 1];

	if (a_size > MAX_NAME || b_size > MAX_NAME)
		return MAX_NAME;
	for (size_t j = 0; j <= b_size; j++)
		row[j] = j;
	for (size_t i = 1; i <= a_size; i++) {
		size_t diagonal = row[0];

		row[0] = i;
		for (size_t j = 1; j <= b_size; j++) {
			size_t above = row[j];
			size_t change = diagonal + (a[i - 1] != b[j - 1]);

			row[j] = least(change, least(above, row[j - 1]) + 1);
			diagonal = above;
		}
	}
	return row[b_size];
}

const struct sf_option *sf_options_of(const struct sf_command *command)
{
	return command->make_options ? command->make_options() : command->options;
}

static const struct sf_option *closest(const struct sf_command *command, const char *name,
				       size_t size)
{
	const struct sf_option *best = NULL;
	size_t best_distance = 3; /* three typing errors in a word are another word */

	for (const struct sf_option *option = sf_options_of(command); option->name; option++) {
		size_t d = distance(name, size, option->name);

		if (d >= 3 && size >= 2 && strncmp(option->name, name, size) == 0)
			d = 2;
		if (d < best_distance && d < size) {
			best = option;
			best_distance = d;
		}
	}
	return best;
}

static bool fail_unknown(const struct sf_command *command, const char *argument, size_t size,
			 struct sf_error *err)
{
	const struct sf_option *guess = NULL;

	sf_fail(err, SF_E_INPUT, "%s has no option %.*s", command->name, (int)least(size, 200),
		argument);
	if (size > 2 && argument[1] == '-')
		guess = closest(command, argument + 2, size - 2);
	if (guess)
		sf_fail_hint(err, "Did you mean --%s?", guess->name);
	return false;
}

static bool find_long(const struct sf_command *command, const char *argument, struct given *ret,
		      struct sf_error *err)
{
	size_t size = strcspn(argument, "=");

	for (const struct sf_option *option = sf_options_of(command); option->name; option++) {
		if (strlen(option->name) != size - 2 ||
		    strncmp(option->name, argument + 2, size - 2) != 0)
			continue;
		*ret = (struct given){ option, argument, (int)size,
				       argument[size] ? argument + size + 1 : NULL };
		return true;
	}
	return fail_unknown(command, argument, size, err);
}

static bool find_letter(const struct sf_command *command, const char *argument, struct given *ret,
			struct sf_error *err)
{
	for (const struct sf_option *option = sf_options_of(command); option->name; option++) {
		if (!option->letter || option->letter != argument[1])
			continue;
		*ret = (struct given){ option, argument, 2, argument[2] ? argument + 2 : NULL };
		return true;
	}
	return fail_unknown(command, argument, strlen(argument), err);
}

static bool is_of_processes(const struct sf_option *option)
{
	return option->kind == SF_OPTION_PID || option->kind == SF_OPTION_PIDS;
}

/* `-p $(pidof nginx) -d 10s`, where nginx does not run: an option stands where the number would. */
static bool is_value(const struct sf_option *option, const char *word)
{
	return !is_of_processes(option) || word[0] != '-' || (word[1] != '-' && !isalpha((unsigned char)word[1]));
}

static bool fail_without_value(const struct given *given, struct sf_error *err)
{
	return sf_fail(err, SF_E_INPUT, "%.*s needs a value: %.*s %s%s", given->spelling_size, given->spelling,
		       given->spelling_size, given->spelling, given->option->argument,
		       is_of_processes(given->option) ? " (`pidof` prints none of a program that does not run)" : "");
}

/* The option at argv[*i], with its value; *i moves behind both. */
static bool take_option(const struct sf_command *command, int argc, char **argv, int *i,
			struct given *ret, struct sf_error *err)
{
	const char *argument = argv[(*i)++];
	bool found = argument[1] == '-' ? find_long(command, argument, ret, err)
					: find_letter(command, argument, ret, err);

	if (!found)
		return false;
	if (ret->option->kind == SF_OPTION_FLAG)
		return !ret->value || sf_fail(err, SF_E_INPUT, "%.*s takes no value",
					      ret->spelling_size, ret->spelling);
	if (!ret->value && *i < argc && is_value(ret->option, argv[*i]))
		ret->value = argv[(*i)++];
	return ret->value || fail_without_value(ret, err);
}

/* `-p $(pidof nginx)` gives a word for each process. */
static bool store_further_pids(int argc, char **argv, int *i, const struct given *first, void *ret,
			       struct sf_error *err)
{
	for (; *i < argc && *argv[*i] && !argv[*i][strspn(argv[*i], "0123456789,")]; ++*i) {
		struct given given = *first;

		given.value = argv[*i];
		if (!store(&given, ret, err))
			return false;
	}
	return true;
}

static bool is_option(const char *argument)
{
	return argument[0] == '-' && argument[1];
}

/* Moves argv[from..to) in front of argv[into..from): options before what is none. */
static void move_before(char **argv, int into, int from, int to)
{
	for (; from < to; from++, into++) {
		char *moved = argv[from];

		memmove(&argv[into + 1], &argv[into], (size_t)(from - into) * sizeof(*argv));
		argv[into] = moved;
	}
}

bool sf_options_parse(const struct sf_command *command, int argc, char **argv, void *ret,
		      int *rest, struct sf_error *err)
{
	int first = 1; /* argv[first..i) are the arguments so far that are no options */

	for (int i = 1; i < argc;) {
		struct given given;
		int start = i;
		bool ends = strcmp(argv[i], "--") == 0;

		if (!ends && !is_option(argv[i])) {
			if (command->takes_command)
				break;
			i++;
			continue;
		}
		if (ends)
			i++;
		else if (!take_option(command, argc, argv, &i, &given, err) ||
			 !store(&given, (char *)ret + given.option->offset, err) ||
			 (given.option->kind == SF_OPTION_PIDS &&
			  !store_further_pids(argc, argv, &i, &given, (char *)ret + given.option->offset, err)))
			return false;
		move_before(argv, first, start, i);
		first += i - start;
		if (ends)
			break;
	}
	*rest = first;
	return true;
}
