/* SPDX-License-Identifier: Apache-2.0 */
/* Reads JSON value by value. */
#include "runtime/coreclr/json.h"

#include <string.h>

#define MAX_ARRAYS 4

struct reading {
	const char *at, *end;
	sf_clr_json_fn *fn;
	void *arg;
	struct sf_clr_json_value value;
};

static void skip_blanks(struct reading *reading)
{
	while (reading->at < reading->end && strchr(" \t\r\n", *reading->at) && *reading->at)
		reading->at++;
}

static bool is_next(struct reading *reading, char wanted)
{
	skip_blanks(reading);
	return reading->at < reading->end && *reading->at == wanted;
}

static bool take(struct reading *reading, char wanted)
{
	if (!is_next(reading, wanted))
		return false;
	reading->at++;
	return true;
}

static bool take_string(struct reading *reading, struct sf_clr_json_text *ret)
{
	if (!take(reading, '"'))
		return false;
	ret->at = reading->at;
	while (reading->at < reading->end && *reading->at != '"')
		reading->at += *reading->at == '\\' && reading->end - reading->at > 1 ? 2 : 1;
	ret->size = (size_t)(reading->at - ret->at);
	return take(reading, '"');
}

static bool is_word(char c)
{
	return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
	       c == '+' || c == '-' || c == '.';
}

static bool take_word(struct reading *reading, struct sf_clr_json_text *ret)
{
	skip_blanks(reading);
	ret->at = reading->at;
	while (reading->at < reading->end && is_word(*reading->at))
		reading->at++;
	ret->size = (size_t)(reading->at - ret->at);
	return ret->size != 0;
}

static bool take_scalar(struct reading *reading)
{
	struct sf_clr_json_value *value = &reading->value;

	value->is_string = is_next(reading, '"');
	if (!(value->is_string ? take_string(reading, &value->text) :
				 take_word(reading, &value->text)))
		return false;
	value->is_only = value->n_arrays && !value->index && is_next(reading, ']');
	reading->fn(reading->arg, value);
	return true;
}

static bool take_value(struct reading *reading);

static bool take_array(struct reading *reading)
{
	struct sf_clr_json_value *value = &reading->value;
	const unsigned outer = value->index;
	bool good = true;

	if (!take(reading, '[') || value->n_arrays == MAX_ARRAYS)
		return false;
	value->n_arrays++;
	if (!is_next(reading, ']')) {
		value->index = 0;
		while ((good = take_value(reading)) && take(reading, ','))
			value->index++;
	}
	value->n_arrays--;
	value->index = outer;
	return good && take(reading, ']');
}

static bool take_member(struct reading *reading)
{
	struct sf_clr_json_value *value = &reading->value;
	const unsigned arrays = value->n_arrays;
	bool good;

	if (value->n_names == SF_CLR_JSON_DEPTH ||
	    !take_string(reading, &value->names[value->n_names]) || !take(reading, ':'))
		return false;
	value->n_names++;
	value->n_arrays = 0;
	good = take_value(reading);
	value->n_arrays = arrays;
	value->n_names--;
	return good;
}

static bool take_object(struct reading *reading)
{
	if (!take(reading, '{'))
		return false;
	if (take(reading, '}'))
		return true;
	do {
		if (!take_member(reading))
			return false;
	} while (take(reading, ','));
	return take(reading, '}');
}

/* Bounded: objects by the names that lead to them, arrays by MAX_ARRAYS. */
static bool take_value(struct reading *reading)
{
	if (is_next(reading, '{'))
		return take_object(reading);
	if (is_next(reading, '['))
		return take_array(reading);
	return take_scalar(reading);
}

bool sf_clr_json_read(const char *text, size_t size, sf_clr_json_fn *fn, void *arg)
{
	struct reading reading = { .at = text, .end = text + size, .fn = fn, .arg = arg };

	return take_value(&reading);
}

bool sf_clr_json_text_is(const struct sf_clr_json_text *text, const char *word)
{
	return strlen(word) == text->size && memcmp(text->at, word, text->size) == 0;
}

static int digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	return c >= 'A' && c <= 'F' ? c - 'A' + 10 : 16;
}

bool sf_clr_json_number(const struct sf_clr_json_value *value, uint64_t *ret)
{
	const struct sf_clr_json_text *text = &value->text;
	const bool hex = text->size > 2 && text->at[0] == '0' && (text->at[1] | 0x20) == 'x';
	const unsigned base = hex ? 16 : 10;
	uint64_t number = 0;

	if (!text->size)
		return false;
	for (size_t i = hex ? 2 : 0; i < text->size; i++) {
		const unsigned next = (unsigned)digit(text->at[i]);

		if (next >= base || number > (UINT64_MAX - next) / base)
			return false;
		number = number * base + next;
	}
	*ret = number;
	return true;
}
