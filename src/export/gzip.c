/* SPDX-License-Identifier: Apache-2.0 */
/* Compresses an export with gzip. */
#include "export/gzip.h"

#include <limits.h>

/* zlib's way to say: a gzip header, and the largest window. */
#define WINDOW_BITS (16 + MAX_WBITS)
#define MEMORY_LEVEL 8

bool sf_gzip_init(struct sf_gzip *gzip, FILE *out)
{
	*gzip = (struct sf_gzip){ .out = out };
	return deflateInit2(&gzip->stream, Z_DEFAULT_COMPRESSION, Z_DEFLATED, WINDOW_BITS,
			    MEMORY_LEVEL, Z_DEFAULT_STRATEGY) == Z_OK;
}

void sf_gzip_deinit(struct sf_gzip *gzip)
{
	deflateEnd(&gzip->stream);
}

/* Runs until all input is taken, and with Z_FINISH until all output is out. */
static void run(struct sf_gzip *gzip, int flush)
{
	unsigned char buffer[16384];

	do {
		gzip->stream.next_out = buffer;
		gzip->stream.avail_out = sizeof(buffer);
		deflate(&gzip->stream, flush);
		fwrite(buffer, 1, sizeof(buffer) - gzip->stream.avail_out, gzip->out);
	} while (gzip->stream.avail_out == 0);
}

void sf_gzip_write(struct sf_gzip *gzip, const void *bytes, size_t size)
{
	const unsigned char *p = bytes;

	while (size) {
		uInt part = size > INT_MAX ? INT_MAX : (uInt)size;

		gzip->stream.next_in = (unsigned char *)p;
		gzip->stream.avail_in = part;
		run(gzip, Z_NO_FLUSH);
		p += part;
		size -= part;
	}
}

void sf_gzip_finish(struct sf_gzip *gzip)
{
	gzip->stream.next_in = NULL;
	gzip->stream.avail_in = 0;
	run(gzip, Z_FINISH);
}
