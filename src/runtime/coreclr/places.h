/* SPDX-License-Identifier: Apache-2.0 */
/* Places in CoreCLR's code: which methods they are in, and on which lines. Ordinary code, one thread at a time. */
#ifndef SF_RUNTIME_CORECLR_PLACES_H
#define SF_RUNTIME_CORECLR_PLACES_H

#include "base/location.h"
#include "frozen/unwind/walk.h"
#include "runtime/coreclr/types.h"

struct sf_clr_places;

/* The description and the reader stay the caller's, and live as long. NULL: no memory. */
struct sf_clr_places *sf_clr_places_create(const struct sf_clr_description *description,
					   const struct sf_reader *memory, int32_t pid);
void sf_clr_places_destroy(struct sf_clr_places *places);   /* takes NULL */

/* From now on frames are found in the ranges of this object. It must live until the next one is in use. */
void sf_clr_places_use(struct sf_clr_places *places, const struct sf_coreclr *object);

/* To name types and methods with what is read for places. */
struct sf_clr_naming sf_clr_places_naming(struct sf_clr_places *places);

/* As sf_runtime_driver.place, .kind and .functions. Of frames of awaiters.h, too. */
uint32_t sf_clr_places_number(struct sf_clr_places *places, const struct sf_frame *frame);
uint8_t sf_clr_places_kind(const struct sf_clr_places *places, uint32_t number);
size_t sf_clr_places_functions(struct sf_clr_places *places, uint32_t number, const struct sf_location **ret);

/* The MethodTable of the type that a place's method belongs to, without what was inlined; 0: unknown. */
uint64_t sf_clr_places_type(const struct sf_clr_places *places, uint32_t number);

#endif
