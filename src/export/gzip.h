/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A gzip member, written to a stream as its contents come. The same contents give the same bytes.
 */
#ifndef SF_EXPORT_GZIP_H
#define SF_EXPORT_GZIP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include <zlib.h>

struct sf_gzip {
	z_stream stream;
	FILE *out;
};

bool sf_gzip_init(struct sf_gzip *gzip, FILE *out);    /* false when memory ran out */
void sf_gzip_deinit(struct sf_gzip *gzip);

void sf_gzip_write(struct sf_gzip *gzip, const void *bytes, size_t size);
void sf_gzip_finish(struct sf_gzip *gzip);             /* nothing may be written behind it */

#endif
