/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The tables by which libjvm describes its structure for debugging tools (HotSpot: runtime/vmStructs.hpp), from the symbols
 * that it exports to the fields, sizes and numbers of a struct sf_hotspot. Hostile input.
 *
 * Each symbol is a variable: the tables' are pointers, the others 64-bit numbers
 * that are set when the library is loaded; so they are read from the process, not from the file.
 */
#ifndef SF_RUNTIME_HOTSPOT_TABLES_H
#define SF_RUNTIME_HOTSPOT_TABLES_H

#include "base/error.h"
#include "frozen/hotspot/hotspot.h"

#define SF_HOTSPOT_EXPORTS(X)                                                                      \
	X(STRUCTS, "Structs")                                                                      \
	X(STRUCT_TYPE, "StructEntryTypeNameOffset")                                                \
	X(STRUCT_FIELD, "StructEntryFieldNameOffset")                                              \
	X(STRUCT_TEXT, "StructEntryTypeStringOffset")                                              \
	X(STRUCT_STATIC, "StructEntryIsStaticOffset")                                              \
	X(STRUCT_OFFSET, "StructEntryOffsetOffset")                                                \
	X(STRUCT_ADDRESS, "StructEntryAddressOffset")                                              \
	X(STRUCT_STRIDE, "StructEntryArrayStride")                                                 \
	X(TYPES, "Types")                                                                          \
	X(TYPE_NAME, "TypeEntryTypeNameOffset")                                                    \
	X(TYPE_SIZE, "TypeEntrySizeOffset")                                                        \
	X(TYPE_STRIDE, "TypeEntryArrayStride")                                                     \
	X(INTS, "IntConstants")                                                                    \
	X(INT_NAME, "IntConstantEntryNameOffset")                                                  \
	X(INT_VALUE, "IntConstantEntryValueOffset")                                                \
	X(INT_STRIDE, "IntConstantEntryArrayStride")                                               \
	X(LONGS, "LongConstants")                                                                  \
	X(LONG_NAME, "LongConstantEntryNameOffset")                                                \
	X(LONG_VALUE, "LongConstantEntryValueOffset")                                              \
	X(LONG_STRIDE, "LongConstantEntryArrayStride")

enum sf_hotspot_export {
#define X(name, symbol) SF_HE_##name,
	SF_HOTSPOT_EXPORTS(X)
#undef X
	SF_HE_N
};

struct sf_hotspot_exports {
	uint64_t at[SF_HE_N];   /* addresses in the process */
};

/*
 * Looks them up in the file behind `fd` (the caller's), which is mapped with this bias. False
 * when one is missing: it is no HotSpot, or its symbols were taken off.
 */
bool sf_hotspot_exports(int fd, uint64_t bias, struct sf_hotspot_exports *ret,
			struct sf_error *err);

/*
 * Fills fields, sizes and numbers of *ret, with none that is beyond its limit (limits.h). False (SF_E_GONE) when the
 * tables cannot be read (yet: they are set while the library is loaded).
 */
bool sf_hotspot_read_tables(const struct sf_reader *memory,
			    const struct sf_hotspot_exports *exports, struct sf_hotspot *ret,
			    struct sf_error *err);

/*
 * A string in the target: at most size - 1 bytes of it, terminated. False, and "", when its first
 * byte cannot be read.
 */
bool sf_hotspot_read_string(const struct sf_reader *memory, uint64_t address, char *ret,
			    size_t size);

#endif
