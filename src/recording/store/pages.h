/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pages of a database in memory, by number, and writing them to a file. Pages are numbered from 1,
 * as SQLite does. Private to src/recording. Returns SQLite's result codes; errno says more.
 */
#ifndef SF_RECORDING_STORE_PAGES_H
#define SF_RECORDING_STORE_PAGES_H

#include <stdint.h>

#include "base/vec.h"

#define SF_PAGE_SIZE 4096u /* of every recording that is written here */

struct sf_page {
	uint32_t number;
	uint8_t *data; /* SF_PAGE_SIZE bytes, malloc */
};

struct sf_pages {
	SF_VEC(struct sf_page) list; /* ascending */
};

/* Keeps a copy. False: no memory. */
bool sf_pages_put(struct sf_pages *pages, uint32_t number, const void *data);

/* NULL: there is none of this number. */
const struct sf_page *sf_pages_get(const struct sf_pages *pages, uint32_t number);

/* The place of the first page of this number or a greater one. */
size_t sf_pages_from(const struct sf_pages *pages, uint32_t number);

/* Drops all from this number on; 0: all. */
void sf_pages_drop(struct sf_pages *pages, uint32_t number);

static inline uint64_t sf_page_offset(uint32_t number)
{
	return (uint64_t)(number - 1) * SF_PAGE_SIZE;
}

/* Writes the pages one behind another, from this offset on. */
int sf_pages_append(int fd, const struct sf_page *pages, size_t n, uint64_t offset);

/* Each in its own place. */
int sf_pages_write(int fd, const struct sf_page *pages, size_t n);

/* All of it. */
int sf_write_at(int fd, const void *data, size_t size, uint64_t offset);

#endif
