/* SPDX-License-Identifier: Apache-2.0 */
/* Fills JSON objects, a member at a time. Without memory a member, or all of them, is missing. */
#ifndef SF_CLI_JSON_H
#define SF_CLI_JSON_H

#include <inttypes.h>
#include <json-c/json.h>
#include <stdbool.h>
#include <stdio.h>

static inline void sf_json_text(struct json_object *json, const char *key, const char *text)
{
	json_object_object_add(json, key, json_object_new_string(text));
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

#endif
