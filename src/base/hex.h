/* SPDX-License-Identifier: Apache-2.0 */
/* Bytes as text: digests and build ids. Signal-safe. */
#ifndef SF_BASE_HEX_H
#define SF_BASE_HEX_H

#include <stddef.h>
#include <stdint.h>

/* Two digits, in small letters, for each byte, and a zero: 2 * n + 1 characters. Returns the end, where the zero is. */
static inline char *sf_hex(const uint8_t *bytes, size_t n, char *ret)
{
	static const char digits[] = "0123456789abcdef";

	for (size_t i = 0; i < n; i++) {
		*ret++ = digits[bytes[i] >> 4];
		*ret++ = digits[bytes[i] & 15];
	}
	*ret = 0;
	return ret;
}

#endif
