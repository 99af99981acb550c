/* SPDX-License-Identifier: Apache-2.0 */
/*
 * JSON, written as it goes. Names come from hostile binaries, and the text may be put inside an
 * HTML page: '<' is always written as \u003c, so no name can end a script element.
 *
 * Tables of numbers are printed directly: as json-c objects a million of them would take
 * 80 MB. json-c escapes the text and writes whatever is small.
 */
#ifndef SF_EXPORT_JSON_TEXT_H
#define SF_EXPORT_JSON_TEXT_H

#include <inttypes.h>
#include <json-c/json.h>
#include <stdbool.h>
#include <stdio.h>

#include "base/error.h"
#include "recording/profile/profile.h"

/* Both return false when memory ran out. */
bool sf_json_string(FILE *out, const char *text);

/* Takes the object: frees it in any case. */
bool sf_json_take(FILE *out, struct json_object *object);

/* Add a member to an object; a text that is NULL is "". Without memory a member, or all of them, is missing. */
static inline void sf_json_text(struct json_object *json, const char *key, const char *text)
{
	json_object_object_add(json, key, json_object_new_string(text ? text : ""));
}

static inline void sf_json_number(struct json_object *json, const char *key, uint64_t number)
{
	json_object_object_add(json, key, json_object_new_uint64(number));
}

static inline void sf_json_flag(struct json_object *json, const char *key, bool flag)
{
	json_object_object_add(json, key, json_object_new_boolean(flag));
}

static inline void sf_json_hex(struct json_object *json, const char *key, uint64_t number)
{
	char text[24];

	snprintf(text, sizeof(text), "0x%" PRIx64, number);
	sf_json_text(json, key, text);
}

/* An object with the name and unit of a measure, and `counted` where it is. */
struct json_object *sf_json_measure(const struct sf_profile_measure *measure);

/* An object with the process and the text of a note. */
struct json_object *sf_json_note(const struct sf_profile *profile, const struct sf_profile_note *note);

/* An object with the facts of the recording: command, engine, host, version, times, rates. */
struct json_object *sf_json_recording(const struct sf_profile *profile);

#endif
