/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where the fields of a Java virtual machine are, for each version of the JDK as a real one told it
 * (fixtures/hotspot-*.txt, by tests/java/record_layout.py).
 */
#ifndef FAKE_LAYOUT_H
#define FAKE_LAYOUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A line of a fixture each. */
struct fake_field {
	char type[32], name[72], text[48];
	uint64_t offset, address;    /* address: of a static one, in the fake */
	bool is_static;
};

struct fake_value {              /* size of a type, or a constant */
	char name[64];
	uint64_t value;
	bool is_size;
};

#define FAKE_FIELDS 160
#define FAKE_VALUES 32

struct fake_layout {
	struct fake_field fields[FAKE_FIELDS];
	struct fake_value values[FAKE_VALUES];
	unsigned n_fields, n_values;
};

/* Of the JDK of this version. Aborts when there is no fixture. */
void fake_layout_read(struct fake_layout *layout, unsigned version);

/* NULL where this version does not have the field. */
struct fake_field *fake_layout_field(struct fake_layout *layout, const char *type,
				     const char *name);

/* 0 where this version does not say. */
uint64_t fake_layout_value(const struct fake_layout *layout, const char *name);

/* Bytes of the field. */
unsigned fake_layout_width(const struct fake_field *field);

/* Bytes that hold all fields of these types, for one struct with its bases. */
size_t fake_layout_room(const struct fake_layout *layout, const char *type, const char *base);

#endif
