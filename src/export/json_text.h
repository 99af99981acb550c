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

#include <json-c/json.h>
#include <stdint.h>
#include <stdio.h>

#include "base/error.h"

/* Both return false when memory ran out. */
bool sf_json_string(FILE *out, const char *text);

/* Takes the object: frees it in any case. */
bool sf_json_take(FILE *out, struct json_object *object);

#endif
