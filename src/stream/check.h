/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A record may come from a program that has run wild, or from anybody's file: before anything in it
 * is used, it is checked here, and nowhere else.
 */
#ifndef SF_STREAM_CHECK_H
#define SF_STREAM_CHECK_H

#include <stddef.h>

#include "stream/record.h"

/*
 * Whether `size` bytes at `record` (8-byte aligned) are one whole record, all of whose sizes,
 * counts and enum values are within bounds. Types that are not known are fine. NULL, or what is
 * wrong with it, for people.
 */
const char *sf_stream_check(const struct sf_record_header *record, size_t size);

#endif
