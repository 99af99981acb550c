/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Interning: every distinct byte string is stored once, and the rest of the program passes its
 * 32-bit number around. Numbers start at 1, are dense, and never change; 0 means none.
 */
#ifndef SF_BASE_INTERN_H
#define SF_BASE_INTERN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct sf_intern;

struct sf_intern *sf_intern_create(void); /* NULL when memory ran out */
void sf_intern_destroy(struct sf_intern *intern);

/*
 * The number of these bytes, adding a copy (8-byte aligned, a zero behind it) if they are new;
 * 0 when memory ran out. *is_new, if not NULL, says which. Any thread, one at a time.
 */
uint32_t sf_intern_add(struct sf_intern *intern, const void *bytes, size_t size, bool *is_new);

/* The number of these bytes if they are there; else 0. */
uint32_t sf_intern_find(const struct sf_intern *intern, const void *bytes, size_t size);

/* sf_intern_add for a C string. */
uint32_t sf_intern_string(struct sf_intern *intern, const char *string);

/* The bytes behind a number that was handed out, and their size; valid until destroy. */
const void *sf_intern_get(const struct sf_intern *intern, uint32_t number, size_t *size);

uint32_t sf_intern_count(const struct sf_intern *intern);

#endif
