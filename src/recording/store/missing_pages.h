/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The pages that a database lacks whose file was cut short. A reader gets a made-up page in the place of each: one row, all of
 * whose columns are NULL, as no table of a recording has one. So SQLite reads every row before it, and the reader knows where
 * the rows end that the file has (recording/profile/rows.h).
 *
 * The format of pages: sqlite.org/fileformat2.html, 1.6. Private to src/recording. Returns SQLite's result codes.
 */
#ifndef SF_RECORDING_STORE_MISSING_PAGES_H
#define SF_RECORDING_STORE_MISSING_PAGES_H

#include <stdbool.h>
#include <stdint.h>

#include "base/vec.h"

struct sf_missing_pages {
	uint64_t there, promised;      /* bytes of the file, and of the database by its header; both 0: nothing is missing */
	SF_VEC(uint32_t) of_indexes;   /* those that are pages of an index */
};

/* Looks whether the file is cut short. *ret is zero, or of an earlier look. */
int sf_missing_pages_find(int fd, struct sf_missing_pages *ret);
void sf_missing_pages_deinit(struct sf_missing_pages *missing);

/* Whether the page is one of them; if so `ret` gets its SF_PAGE_SIZE bytes. */
bool sf_missing_pages_make(const struct sf_missing_pages *missing, uint32_t number, uint8_t *ret);

#endif
