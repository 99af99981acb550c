/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CoreCLR, the runtime of .NET, as the walker sees it: where its structures have their fields, and which ranges
 * of addresses hold code that it made.
 *
 * The offsets come from the runtime's own description of itself (runtime/coreclr/description.h). The ranges are a copy of
 * its range map. An object never changes once it is made: when ranges come or go, ordinary code makes a new object
 * (runtime/coreclr/coreclr.h). The code inside a range is looked up in the process at each step, so a method that was
 * compiled after the object was made is found.
 *
 * Names of structures and their meaning: docs/design/datacontracts in the dotnet/runtime repository, and
 * src/coreclr/vm/codeman.h there.
 */
#ifndef SF_FROZEN_CORECLR_CORECLR_H
#define SF_FROZEN_CORECLR_CORECLR_H

#include <stdbool.h>
#include <stdint.h>

#include "frozen/unwind/code_map.h"

/*
 * The fields that are used. X(NAME, type, field as the descriptor names them). To add one: add a line; its absence
 * is handled by sf_clr_has(), or by a line in the needs of runtime/coreclr/description.c.
 */
#define SF_CLR_FIELDS(X)                                                                           \
	X(THREAD_ID, "Thread", "Id")                                                               \
	X(THREAD_STATE, "Thread", "State")                                                         \
	X(THREAD_FRAME, "Thread", "Frame")                                                         \
	X(THREAD_OBJECT, "Thread", "GCHandle")                                                     \
	X(THREAD_LINK, "Thread", "LinkNext")                                                       \
	X(THREAD_OS_ID, "Thread", "OSId")                                                          \
	X(STORE_FIRST, "ThreadStore", "FirstThreadLink")                                           \
	X(STORE_COUNT, "ThreadStore", "ThreadCount")                                               \
	X(MAP_TOP, "RangeSectionMap", "TopLevelData")                                              \
	X(FRAGMENT_NEXT, "RangeSectionFragment", "Next")                                           \
	X(FRAGMENT_SECTION, "RangeSectionFragment", "RangeSection")                                \
	X(SECTION_BEGIN, "RangeSection", "RangeBegin")                                             \
	X(SECTION_END, "RangeSection", "RangeEndOpen")                                             \
	X(SECTION_FLAGS, "RangeSection", "Flags")                                                  \
	X(SECTION_MODULE, "RangeSection", "R2RModule")                                             \
	X(SECTION_HEAPS, "RangeSection", "HeapList")                                               \
	X(SECTION_DYING, "RangeSection", "NextForDelete")                                          \
	X(HEAP_START, "CodeHeapListNode", "StartAddress")                                          \
	X(HEAP_END, "CodeHeapListNode", "EndAddress")                                              \
	X(HEAP_BASE, "CodeHeapListNode", "MapBase")                                                \
	X(HEAP_MAP, "CodeHeapListNode", "HeaderMap")                                               \
	X(HEADER_METHOD, "RealCodeHeader", "MethodDesc")                                           \
	X(HEADER_N_UNWIND, "RealCodeHeader", "NumUnwindInfos")                                     \
	X(HEADER_UNWIND, "RealCodeHeader", "UnwindInfos")                                          \
	X(READY_HEADER, "ReadyToRunInfo", "ReadyToRunHeader")                                      \
	X(READY_COMPOSITE, "ReadyToRunInfo", "CompositeInfo")                                      \
	X(READY_FUNCTIONS, "ReadyToRunInfo", "RuntimeFunctions")                                   \
	X(READY_N_FUNCTIONS, "ReadyToRunInfo", "NumRuntimeFunctions")                              \
	X(READY_COLD, "ReadyToRunInfo", "HotColdMap")                                              \
	X(READY_N_COLD, "ReadyToRunInfo", "NumHotColdMap")                                         \
	X(READY_THUNKS, "ReadyToRunInfo", "DelayLoadMethodCallThunks")                             \
	X(READY_METHODS, "ReadyToRunInfo", "EntryPointToMethodDescMap")                            \
	X(HASH_BUCKETS, "HashMap", "Buckets")                                                      \
	X(BUCKET_KEYS, "Bucket", "Keys")                                                           \
	X(BUCKET_VALUES, "Bucket", "Values")                                                       \
	X(METHOD_FLAGS3, "MethodDesc", "Flags3AndTokenRemainder")                                  \
	X(METHOD_INDEX, "MethodDesc", "ChunkIndex")                                                \
	X(METHOD_FLAGS, "MethodDesc", "Flags")                                                     \
	X(METHOD_CODE, "MethodDesc", "CodeData")                                                   \
	X(CHUNK_TABLE, "MethodDescChunk", "MethodTable")                                           \
	X(CHUNK_FLAGS, "MethodDescChunk", "FlagsAndTokenRange")                                    \
	X(GENERIC_ARGUMENTS, "InstantiatedMethodDesc", "PerInstInfo")                              \
	X(GENERIC_N_ARGUMENTS, "InstantiatedMethodDesc", "NumGenericArgs")                         \
	X(DYNAMIC_NAME, "DynamicMethodDesc", "MethodName")                                         \
	X(CODE_VERSIONS, "MethodDescCodeData", "VersioningState")                                  \
	X(VERSIONS_FIRST, "MethodDescVersioningState", "NativeCodeVersionNode")                    \
	X(VERSION_CODE, "NativeCodeVersionNode", "NativeCode")                                     \
	X(VERSION_NEXT, "NativeCodeVersionNode", "Next")                                           \
	X(TABLE_FLAGS, "MethodTable", "MTFlags")                                                   \
	X(TABLE_FLAGS2, "MethodTable", "MTFlags2")                                                 \
	X(TABLE_MODULE, "MethodTable", "Module")                                                   \
	X(TABLE_CANON, "MethodTable", "EEClassOrCanonMT")                                          \
	X(TABLE_ARGUMENTS, "MethodTable", "PerInstInfo")                                           \
	X(TABLE_PARENT, "MethodTable", "ParentMethodTable")                                        \
	X(CLASS_FIELDS, "EEClass", "FieldDescList")                                                \
	X(CLASS_RANK, "ArrayClass", "Rank")                                                        \
	X(DICTIONARY_N, "GenericsDictInfo", "NumDicts")                                            \
	X(DICTIONARY_N_ARGUMENTS, "GenericsDictInfo", "NumTypeArgs")                               \
	X(TYPE_KIND, "TypeDesc", "TypeAndFlags")                                                   \
	X(TYPE_OF, "ParamTypeDesc", "TypeArg")                                                     \
	X(VARIABLE_MODULE, "TypeVarTypeDesc", "Module")                                            \
	X(VARIABLE_TOKEN, "TypeVarTypeDesc", "Token")                                              \
	X(MODULE_PATH, "Module", "Path")                                                           \
	X(MODULE_FILE, "Module", "FileName")                                                       \
	X(MODULE_NAME, "Module", "SimpleName")                                                     \
	X(MODULE_BASE, "Module", "Base")                                                           \
	X(MODULE_READY, "Module", "ReadyToRunInfo")                                                \
	X(MODULE_DYNAMIC, "Module", "DynamicMetadata")                                             \
	X(METADATA_SIZE, "DynamicMetadata", "Size")                                                \
	X(METADATA_BYTES, "DynamicMetadata", "Data")                                               \
	X(FRAME_NEXT, "Frame", "Next")                                                             \
	X(CALL_SP, "InlinedCallFrame", "CallSiteSP")                                               \
	X(CALL_RETURN, "InlinedCallFrame", "CallerReturnAddress")                                  \
	X(CALL_FP, "InlinedCallFrame", "CalleeSavedFP")                                            \
	X(FRAMED_BLOCK, "FramedMethodFrame", "TransitionBlockPtr")                                 \
	X(BLOCK_SAVED, "TransitionBlock", "CalleeSavedRegisters")                                  \
	X(BLOCK_RETURN, "TransitionBlock", "ReturnAddress")                                        \
	X(HIJACK_RETURN, "HijackFrame", "ReturnAddress")                                           \
	X(HIJACK_ARGS, "HijackFrame", "HijackArgsPtr")                                             \
	X(ARGS_SAVED, "HijackArgs", "CalleeSavedRegisters")                                        \
	X(FAULT_CONTEXT, "FaultingExceptionFrame", "TargetContext")                                \
	X(THROW_CONTEXT, "SoftwareExceptionFrame", "TargetContext")                                \
	X(RESUMABLE_CONTEXT, "ResumableFrame", "TargetContextPtr")                                 \
	X(SAVED_R12, "CalleeSavedRegisters", "R12")                                                \
	X(SAVED_R13, "CalleeSavedRegisters", "R13")                                                \
	X(SAVED_R14, "CalleeSavedRegisters", "R14")                                                \
	X(SAVED_R15, "CalleeSavedRegisters", "R15")                                                \
	X(SAVED_RBX, "CalleeSavedRegisters", "Rbx")                                                \
	X(SAVED_RBP, "CalleeSavedRegisters", "Rbp")

/* X(NAME, type): the sizes of structures. */
#define SF_CLR_SIZES(X)                                                                            \
	X(METHOD, "MethodDesc")                                                                    \
	X(CHUNK, "MethodDescChunk")                                                                \
	X(BLOCK, "TransitionBlock")                                                                \
	X(ARGS, "HijackArgs")

/*
 * The kinds of explicit frames that lead to managed code. X(NAME, global that has the kind's number, where the
 * registers are): how frames.c restores the caller.
 */
#define SF_CLR_FRAMES(X)                                                                           \
	X(INLINED_CALL, "InlinedCallFrameIdentifier", CALL)                                        \
	X(RESUMABLE, "ResumableFrameIdentifier", CONTEXT)                                          \
	X(REDIRECTED, "RedirectedThreadFrameIdentifier", CONTEXT)                                  \
	X(FAULTING, "FaultingExceptionFrameIdentifier", FAULT)                                     \
	X(THROWING, "SoftwareExceptionFrameIdentifier", THROW)                                     \
	X(CALLI, "PInvokeCalliFrameIdentifier", BLOCK)                                             \
	X(HIJACK, "HijackFrameIdentifier", HIJACK)                                                 \
	X(PRESTUB, "PrestubMethodFrameIdentifier", BLOCK)                                          \
	X(COUNTING, "CallCountingHelperFrameIdentifier", BLOCK)                                    \
	X(DISPATCH, "StubDispatchFrameIdentifier", BLOCK)                                          \
	X(EXTERNAL, "ExternalMethodFrameIdentifier", BLOCK)                                        \
	X(DYNAMIC_HELPER, "DynamicHelperFrameIdentifier", BLOCK)

enum sf_clr_field {
#define X(name, type, field) SF_CLR_##name,
	SF_CLR_FIELDS(X)
#undef X
	SF_CLR_N_FIELDS
};

enum sf_clr_size {
#define X(name, type) SF_CLR_SIZE_##name,
	SF_CLR_SIZES(X)
#undef X
	SF_CLR_N_SIZES
};

enum sf_clr_frame {
#define X(name, global, how) SF_CLR_FRAME_##name,
	SF_CLR_FRAMES(X)
#undef X
	SF_CLR_N_FRAMES
};

#define SF_CLR_NO_FIELD UINT16_MAX

struct sf_clr_layout {
	uint16_t fields[SF_CLR_N_FIELDS];   /* offsets; SF_CLR_NO_FIELD: the runtime has none, or it is not known */
	uint16_t sizes[SF_CLR_N_SIZES];     /* 0: unknown */
	uint64_t frames[SF_CLR_N_FRAMES];   /* the first word of a frame of this kind; 0: unknown */
	uint32_t last_stub_kind;            /* values up to this one before a code's start are kinds of stubs */
	uint8_t nibble_map;                 /* version of the map of code starts: 1 or 2 */
	uint8_t method_alignment;           /* of MethodDescs in their chunk */
};

/* The contents of a range. */
enum sf_clr_code {
	SF_CLR_CODE_JITTED,       /* methods that the JIT made, and stubs */
	SF_CLR_CODE_PRECOMPILED,  /* an image with ReadyToRun code */
	SF_CLR_CODE_STUBS,        /* stubs only */
};

/* A RUNTIME_FUNCTION on x86-64: addresses are counted from the range's base. */
struct sf_clr_function {
	uint32_t begin, end, unwind;
};

/* The functions of a precompiled image, a copy: it never changes. By `begin`, ascending. */
struct sf_clr_functions {
	uint32_t n;
	struct sf_clr_function items[];
};

struct sf_clr_range {
	struct sf_region region;            /* first */
	uint8_t code;                       /* enum sf_clr_code */
	bool is_collectible;                /* the code can be freed */
	uint16_t stub_kind;                 /* STUBS: their kind; 0: unknown */
	uint64_t base;                      /* functions count from here */
	uint64_t heap;                      /* JITTED: the code heap's list node */
	uint64_t ready;                     /* PRECOMPILED: the ReadyToRunInfo */
	uint64_t thunks, thunks_end;        /* PRECOMPILED: thunks between the functions */
	const struct sf_clr_functions *functions; /* PRECOMPILED: not owned */
};

struct sf_coreclr {
	struct sf_runtime runtime;          /* first */
	struct sf_clr_layout layout;
	/*
	 * Executable memory that is the runtime's, or may be. Code there that is in no range is a helper that the runtime
	 * copied (a write barrier), or not the runtime's.
	 */
	const struct sf_region *spaces;     /* by start, ascending; so are the ranges */
	const struct sf_clr_range *ranges;
	uint32_t n_spaces, n_ranges;
	uint64_t range_map;                 /* the runtime's own map, of which the ranges are a copy */
};

extern const struct sf_runtime_ops sf_coreclr_ops;

/*
 * The kinds and keys of frames (sf_frame). Managed code: token is the address of the method's code, id is sf_clr_method_id()
 * (method_id.h; 0 for precompiled code). A stub: id is its kind, as the runtime numbers them, or one of these.
 */
#define SF_CLR_STUB_HELPER 254u   /* a helper that was copied into the runtime's memory */
#define SF_CLR_STUB_UNKNOWN 255u  /* no code that could be made out */

static inline bool sf_clr_has(const struct sf_clr_layout *layout, enum sf_clr_field field)
{
	return layout->fields[field] != SF_CLR_NO_FIELD;
}

/* A field of the structure at `base`: false if it is not known or cannot be read. Signal-safe, as all below. */
struct sf_reader;
bool sf_clr_get(const struct sf_clr_layout *layout, const struct sf_reader *memory,
		enum sf_clr_field field, uint64_t base, uint64_t *ret);
bool sf_clr_get_u32(const struct sf_clr_layout *layout, const struct sf_reader *memory,
		    enum sf_clr_field field, uint64_t base, uint32_t *ret);
bool sf_clr_get_u16(const struct sf_clr_layout *layout, const struct sf_reader *memory,
		    enum sf_clr_field field, uint64_t base, uint16_t *ret);

/* The region of a range or of a space that holds pc, or NULL: sf_runtime_ops.find. */
const struct sf_region *sf_clr_find_region(const struct sf_runtime *runtime, uint64_t pc);

/* Whether the runtime's own map has something for the part of the address space that pc is in, or cannot be read. */
bool sf_clr_is_listed(const struct sf_coreclr *coreclr, const struct sf_reader *memory, uint64_t pc);

/* The runtime of this map, or NULL. */
const struct sf_coreclr *sf_coreclr_of(const struct sf_code_map *map);

/*
 * Gives a frame whose pc the runtime itself has reported its kind and key. A pc at the start of a body is where the thread
 * stands. Any other one counts as a return address, unless the frame says that it is exact. False: no body is known there.
 */
struct sf_frame;
bool sf_clr_key_frame(const struct sf_coreclr *coreclr, const struct sf_reader *memory, struct sf_frame *frame);

/* The range that holds pc, or NULL. */
const struct sf_clr_range *sf_clr_find_range(const struct sf_coreclr *coreclr, uint64_t pc);

#endif
