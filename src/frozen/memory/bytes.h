/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A cursor over foreign bytes (little-endian). It never leaves its bounds: a read that would
 * gives 0 and marks the cursor bad for good, so a parser reads a whole record and
 * checks `bad` once at its end. Signal-safe.
 */
#ifndef SF_FROZEN_MEMORY_BYTES_H
#define SF_FROZEN_MEMORY_BYTES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct sf_bytes {
	const uint8_t *at, *end;
	bool bad;
};

/* `start` may be NULL if `size` is 0. */
static inline struct sf_bytes sf_bytes_of(const void *start, size_t size)
{
	const uint8_t *at = start;

	return (struct sf_bytes){ .at = at, .end = size ? at + size : at };
}

static inline size_t sf_bytes_left(const struct sf_bytes *bytes)
{
	return (size_t)(bytes->end - bytes->at);
}

/* The next `size` bytes, or NULL. */
static inline const uint8_t *sf_bytes_take(struct sf_bytes *bytes, uint64_t size)
{
	const uint8_t *taken = bytes->at;

	if (size > sf_bytes_left(bytes)) {
		bytes->bad = true;
		bytes->at = bytes->end;
		return NULL;
	}
	if (size)     /* NULL + 0 is not defined */
		bytes->at += size;
	return taken;
}

/* An unsigned number of `size` bytes, at most 8. */
static inline uint64_t sf_bytes_number(struct sf_bytes *bytes, size_t size)
{
	const uint8_t *taken = sf_bytes_take(bytes, size);
	uint64_t number = 0;

	if (taken)
		memcpy(&number, taken, size);
	return number;
}

static inline uint8_t sf_bytes_u8(struct sf_bytes *bytes)
{
	return (uint8_t)sf_bytes_number(bytes, 1);
}

static inline uint32_t sf_bytes_u32(struct sf_bytes *bytes)
{
	return (uint32_t)sf_bytes_number(bytes, 4);
}

/* The size with which a signed number is stored, widened. */
static inline int64_t sf_sign_extend(uint64_t number, size_t size)
{
	unsigned unused = (unsigned)(64 - 8 * size);

	return (int64_t)(number << unused) >> unused;
}

/*
 * LEB128 (DWARF 5, section 7.6). Bits beyond 64 are dropped: a value that large has no meaning, and its
 * user checks the range. More than ten bytes are a mistake.
 */
static inline uint64_t sf_bytes_leb(struct sf_bytes *bytes, bool is_signed)
{
	uint64_t number = 0;
	unsigned shift = 0;
	uint8_t byte;

	do {
		byte = sf_bytes_u8(bytes);
		number |= (uint64_t)(byte & 0x7f) << shift;
		shift += 7;
	} while (byte & 0x80 && shift < 64);
	bytes->bad |= byte >> 7;
	if (is_signed && byte & 0x40 && shift < 64)
		number |= ~UINT64_C(0) << shift;
	return number;
}

static inline uint64_t sf_bytes_uleb(struct sf_bytes *bytes)
{
	return sf_bytes_leb(bytes, false);
}

static inline int64_t sf_bytes_sleb(struct sf_bytes *bytes)
{
	return (int64_t)sf_bytes_leb(bytes, true);
}

/* A string with its zero, or NULL. */
static inline const char *sf_bytes_string(struct sf_bytes *bytes)
{
	const size_t left = sf_bytes_left(bytes);
	const uint8_t *zero = left ? memchr(bytes->at, 0, left) : NULL;
	const uint64_t size = zero ? (uint64_t)(zero + 1 - bytes->at) : UINT64_MAX;

	return (const char *)sf_bytes_take(bytes, size);
}

#endif
