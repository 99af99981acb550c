/* SPDX-License-Identifier: Apache-2.0 */
/* The code that a frame is in, for the walker and its steppers. Signal-safe. */
#include "frozen/unwind/walk.h"

#include "frozen/frozen.h"

bool sf_is_sigreturn(const struct sf_still *still, uint64_t pc)
{
	const struct sf_reader code = sf_reader_outside(&still->memory);

	return still->arch->is_sigreturn(&code, pc);
}

const struct sf_region *sf_frame_region(const struct sf_still *still, uint64_t pc, bool exact)
{
	const struct sf_region *region = sf_code_map_find(still->map, exact ? pc : pc - 1);

	if (region || exact)
		return region;
	region = sf_code_map_find(still->map, pc);
	return region && sf_is_sigreturn(still, pc) ? region : NULL;
}
