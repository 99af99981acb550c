/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What tables of a libjvm can say: how far into its struct a field lies, how large a struct is, what a
 * constant is. Tables are hostile input, and this is the one place where they are held against each
 * other: what reads by them (frozen/hotspot/blob.c above all) relies on it.
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
 *   - what is expected to hold a pointer is 8 bytes wide
 */
void sf_hotspot_limit(struct sf_hotspot *hotspot);

#endif
