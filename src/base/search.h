/* SPDX-License-Identifier: Apache-2.0 */
/* The order of numbers, and binary search in what is in order. */
#ifndef SF_BASE_SEARCH_H
#define SF_BASE_SEARCH_H

#include <stddef.h>

/* As qsort() wants it: less than 0, 0 or more than 0. */
#define sf_order(a, b) (((a) > (b)) - ((a) < (b)))

/* Of how many of the first `n` elements `is_before`, an expression of the element's number `i`, is true: of the first ones only. */
#define sf_count_before(n, i, is_before)                                                           \
	({                                                                                         \
		size_t low_ = 0, high_ = (n);                                                      \
                                                                                                   \
		while (low_ < high_) {                                                             \
			const size_t i = low_ + (high_ - low_) / 2;                                \
                                                                                                   \
			if (is_before)                                                             \
				low_ = i + 1;                                                      \
			else                                                                       \
				high_ = i;                                                         \
		}                                                                                  \
		low_;                                                                              \
	})

#endif
