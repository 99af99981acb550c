/* SPDX-License-Identifier: Apache-2.0 */
/* The ids of managed code, by which it is recognised that other code has taken its place. */
#ifndef SF_FROZEN_CORECLR_METHOD_ID_H
#define SF_FROZEN_CORECLR_METHOD_ID_H

#include "frozen/coreclr/coreclr.h"
#include "frozen/reader.h"

/*
 * The id of jitted code in this range, whose MethodDesc this is. It differs where the code's place was used again for another
 * method's code. A dynamic method's MethodDesc is used again, too, with another name, so its name is in the id. Signal-safe.
 */
uint32_t sf_clr_method_id(const struct sf_clr_layout *layout, const struct sf_clr_range *range, const struct sf_reader *memory,
			  uint64_t method);

#endif
