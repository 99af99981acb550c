/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The limits for the values in a libjvm's tables: a field's offset in its struct, the size of a struct, a
 * constant. Tables are hostile input. Only this file checks their values against each other. Code that uses
 * the values (frozen/hotspot/hotspot.c above all) relies on these checks.
 */
#ifndef SF_RUNTIME_HOTSPOT_LIMITS_H
#define SF_RUNTIME_HOTSPOT_LIMITS_H

#include "frozen/hotspot/hotspot.h"

/*
 * Takes out of *hotspot each field, size and number that is beyond its limit, as if the tables had not
 * named it. From then on, of the fields and sizes that are there:
 *
 *   - a field is static (`at` is an address) if and only if it is expected to be; else `at` is an offset
 *   - a field of a CodeBlob and 8 bytes from there on lie in SF_HOTSPOT_MAX_HEADER, with the largest block before it
 *   - a field of a struct with a known size lies in it
 *   - a field that is expected to hold a pointer is 8 bytes wide
 */
void sf_hotspot_limit(struct sf_hotspot *hotspot);

#endif
