/* SPDX-License-Identifier: Apache-2.0 */
/* Writes texts as JSON strings. */
#include "export/json_text.h"

/* In JSON a '<' can only stand inside a string, so this is right for any JSON text. */
static void print_without_tags(FILE *out, const char *text)
{
	for (; *text; text++) {
		if (*text == '<')
			fputs("\\u003c", out);
		else
			putc(*text, out);
	}
}

bool sf_json_take(FILE *out, struct json_object *object)
{
	const char *text = NULL;

	if (object)
		text = json_object_to_json_string_ext(
			object, JSON_C_TO_STRING_PLAIN | JSON_C_TO_STRING_NOSLASHESCAPE);
	if (text)
		print_without_tags(out, text);
	json_object_put(object);
	return text != NULL;
}

bool sf_json_string(FILE *out, const char *text)
{
	return sf_json_take(out, json_object_new_string(text));
}

struct json_object *sf_json_measure(const struct sf_profile_measure *measure)
{
	struct json_object *json = json_object_new_object();

	sf_json_text(json, "name", measure->name);
	sf_json_text(json, "unit", measure->unit);
	if (measure->is_counted)
		sf_json_number(json, "counted", measure->counted);
	return json;
}

struct json_object *sf_json_note(const struct sf_profile *profile, const struct sf_profile_note *note)
{
	struct json_object *json = json_object_new_object();

	json_object_object_add(json, "pid", json_object_new_int(note->pid));
	sf_json_text(json, "text", sf_profile_string(profile, note->text));
	return json;
}

struct json_object *sf_json_recording(const struct sf_profile *profile)
{
	struct json_object *json = json_object_new_object();

	sf_json_text(json, "command", profile->command);
	sf_json_text(json, "engine", profile->engine);
	sf_json_text(json, "host", profile->host);
	sf_json_text(json, "version", profile->version);
	sf_json_number(json, "start_unix_ns", profile->start_unix_ns);
	sf_json_number(json, "duration_ns", profile->duration_ns);
	sf_json_number(json, "rate_mhz", profile->rate_mhz);
	sf_json_number(json, "blocked_rate_mhz", profile->blocked_rate_mhz);
	sf_json_flag(json, "complete", profile->complete);
	return json;
}
