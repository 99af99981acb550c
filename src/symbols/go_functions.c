/* SPDX-License-Identifier: Apache-2.0 */
/* Takes the names of Go's functions from the tables of Go's runtime (elf/go_tables.h). */
#include "elf/go_tables.h"
#include "symbols/ranges.h"

bool sf_ranges_add_go(struct sf_ranges *ranges, struct sf_elf *elf)
{
	struct sf_section section;
	struct sf_go_tables tables;

	if (!sf_go_section(elf, &section) || !sf_go_tables_open(&section, &tables))
		return true;
	for (uint64_t i = 0; i < tables.n; i++) {
		const struct sf_range range = {
			.start = sf_go_entry(&tables, i), .end = sf_go_entry(&tables, i + 1), .name = sf_go_name(&tables, i),
			.rank = SF_RANK_SIZED,
		};

		if (range.name && range.start < range.end && !sf_vec_push(ranges, range))
			return false;
	}
	return true;
}
