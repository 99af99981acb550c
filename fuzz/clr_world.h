/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A memory with objects of .NET, for the fuzz targets fuzz_clr_*: right at first, and each input is a list of words
 * that are written over it. Types have their names and fields from an assembly (clr_types.dll), whose bytes stay as
 * they are.
 */
#ifndef SF_FUZZ_CLR_WORLD_H
#define SF_FUZZ_CLR_WORLD_H

#include "runtime/coreclr/modules.h"

#define CLR_DATA UINT64_C(0x10000)
#define CLR_SIZE 0x4000u
#define CLR_IMAGE UINT64_C(0x200000)
#define CLR_MODULE (CLR_DATA + 0x20)

/* The parts of a type, from its MethodTable on; an object is none of its parts, but has a place there. */
#define CLR_CLASS 0x80u
#define CLR_FIELDS 0x100u
#define CLR_OBJECT 0x300u

extern struct sf_clr_description clr_description;
extern const struct sf_reader clr_memory;

/* Makes the memory, the layout of structures, and a module. Ends the program where the assembly cannot be read. */
void clr_world_init(void);

/* The first contents of the memory. */
void clr_put(uint64_t at, uint64_t value);

/*
 * A type of the assembly by its name, with its own fields, one word each, in their order. Those of its base are in
 * front of them: `n_before` words.
 */
void clr_put_type(uint64_t table, const char *name, uint32_t n_before);

/* Its number in the assembly. */
uint32_t clr_type_row(const char *name);

/* The memory as it was at first, but for the words of an input: two bytes of where, and eight of what. */
void clr_spoil(const uint8_t *data, size_t size);

#endif
