/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The redo record: it makes the change of many pages of a recording a single step. The new pages are
 * first appended to the file, with a checksum. Then they are written to their places, and the record
 * is cut off. A file that ends with a whole record is read as if its pages were in their places
 * already. A record that is not whole is ignored.
 *
 * Layout, all numbers big-endian (as SQLite's): the pages, one behind another; their numbers
 * (32 bits each, ascending, the first is 1); the trailer, at the very end of the file:
 *
 *   offset  size
 *        0    16  "stillframe redo\0"
 *       16     8  size of the database without this record, in bytes
 *       24     4  how many pages
 *       28     4  size of a page: 4096
 *       32     8  checksum of page 1 as it is until it is changed in its place
 *       40     8  checksum of the record up to here
 *
 * Checksums are FNV-1a, 64 bits. They distinguish an unfinished record from a whole one, and do not
 * protect from an attacker. The record of a file from a stranger is used: it can only name pages of
 * that file.
 *
 * Private to src/recording. Returns SQLite's result codes.
 */
#ifndef SF_RECORDING_STORE_REDO_H
#define SF_RECORDING_STORE_REDO_H

#include <stdint.h>

#include "recording/store/pages.h"

#define SF_REDO_TRAILER 48u
#define SF_REDO_MAX_PAGES (1u << 18) /* 1 GB */

/* Appends the record of these pages, the first of which is page 1, at `start`, which is the end. */
int sf_redo_append(int fd, uint64_t start, const struct sf_page *pages, size_t n, uint64_t size);

/*
 * Looks for a whole record at the end of a file. *pages is emptied, and gets the pages of the record; none is no
 * error. *size_ret: of the database, in bytes.
 */
int sf_redo_find(int fd, struct sf_pages *pages, uint64_t *size_ret);

/* For tests that make up records: the checksum of what a file has from `start` up to `end`. */
bool sf_redo_checksum(int fd, uint64_t start, uint64_t end, uint64_t *ret);

#endif
