/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The walker's description of one HotSpot virtual machine in a process: the addresses of its code, and
 * the offsets of the fields that a walk needs. src/runtime/hotspot makes it from the tables that
 * libjvm exports for its own debugging tools (gHotSpotVMStructs and its kin), never from a header.
 * The description does not change afterwards. docs/hotspot.md says how each kind of frame is walked,
 * and which information may be missing.
 *
 * The walker does not trust memory of a virtual machine: it may be garbage, or of another moment
 * than the stack. Every read may fail, every loop is bounded, every length is checked.
 */
#ifndef SF_FROZEN_HOTSPOT_H
#define SF_FROZEN_HOTSPOT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "frozen/unwind/code_map.h"
#include "frozen/reader.h"

/*
 * X(NAME, types, fields, width): of several types or fields, the first that the tables have counts.
 * Width: bytes, negative for signed fields; the type in the table overrides it.
 * To add one: add a line. A field that the tables do not have gets width 0.
 */
#define SF_HOTSPOT_FIELDS(X)                                                                       \
	/* where code is */                                                                        \
	X(CODE_LOW, "CodeCache", "_low_bound", 8)                                                  \
	X(CODE_HIGH, "CodeCache", "_high_bound", 8)                                                \
	X(CODE_HEAPS, "CodeCache", "_heaps", 8)                                                    \
	X(CODE_HEAP, "CodeCache", "_heap", 8) /* JDK 8: there is one */                            \
	X(LIST_LEN, "GrowableArrayBase|GenericGrowableArray", "_len", -4)                          \
	X(LIST_DATA, "GrowableArray<int>", "_data", 8)                                             \
	X(HEAP_MEMORY, "CodeHeap", "_memory", 8)                                                   \
	X(HEAP_SEGMAP, "CodeHeap", "_segmap", 8)                                                   \
	X(HEAP_LOG2, "CodeHeap", "_log2_segment_size", -4)                                         \
	X(SPACE_LOW, "VirtualSpace", "_low_boundary", 8)                                           \
	X(SPACE_HIGH, "VirtualSpace", "_high_boundary", 8)                                         \
	X(SPACE_COMMITTED, "VirtualSpace", "_high", 8)                                             \
	X(BLOCK_USED, "HeapBlock::Header", "_used", 1)                                             \
	X(CALL_STUB, "StubRoutines", "_call_stub_return_address", 8)                               \
	X(INTERPRETER, "AbstractInterpreter", "_code", 8)                                          \
	X(QUEUE_BUFFER, "StubQueue", "_stub_buffer", 8)                                            \
	X(QUEUE_LIMIT, "StubQueue", "_buffer_limit", -4)                                           \
	X(QUEUE_END, "StubQueue", "_queue_end", -4)                                                \
	X(CODELET_TEXT, "InterpreterCodelet", "_description", 8)                                   \
	X(CODELET_SIZE, "InterpreterCodelet", "_size", -4)                                         \
	/* pieces of code: pointers up to JDK 22, offsets from 23 on (and in 8) */                 \
	X(BLOB_NAME, "CodeBlob", "_name", 8)                                                       \
	X(BLOB_SIZE, "CodeBlob", "_size", -4)                                                      \
	X(BLOB_CODE_BEGIN, "CodeBlob", "_code_begin", 8)                                           \
	X(BLOB_CODE_OFFSET, "CodeBlob", "_code_offset", -4)                                        \
	X(BLOB_CODE_END, "CodeBlob", "_code_end", 8)                                               \
	X(BLOB_DATA_OFFSET, "CodeBlob", "_data_offset", -4)                                        \
	X(BLOB_FRAME_SIZE, "CodeBlob", "_frame_size", -4)                                          \
	X(BLOB_FRAME_COMPLETE, "CodeBlob", "_frame_complete_offset", -4)                           \
	X(BLOB_MUTABLE, "CodeBlob", "_mutable_data", 8)                                            \
	X(BLOB_RELOCATION_SIZE, "CodeBlob", "_relocation_size", -4)                                \
	X(NM_METHOD, "nmethod|CompiledMethod", "_method", 8)                                       \
	X(NM_ENTRY, "nmethod", "_verified_entry_point", 8)                                         \
	X(NM_ENTRY_OFFSET, "nmethod", "_verified_entry_offset", 2)                                 \
	X(NM_LOOP_ENTRY, "nmethod", "_osr_entry_point", 8)                                         \
	X(NM_COMPILE_ID, "nmethod", "_compile_id", -4)                                             \
	X(NM_LEVEL, "nmethod", "_comp_level", 1)                                                   \
	X(NM_DEOPT, "CompiledMethod|nmethod", "_deopt_handler_begin", 8)                           \
	X(NM_DEOPT_MH, "CompiledMethod|nmethod", "_deopt_mh_handler_begin", 8)                     \
	X(NM_DEOPT_OFFSET, "nmethod",                                                              \
	  "_deopt_handler_offset|_deopt_handler_entry_offset|_deoptimize_offset", -4)              \
	X(NM_DEOPT_MH_OFFSET, "nmethod", "_deopt_mh_handler_offset|_deoptimize_mh_offset", -4)     \
	X(NM_ORIG_PC, "nmethod", "_orig_pc_offset", -4)                                            \
	/* what an address of compiled code belongs to */                                          \
	X(NM_METADATA, "nmethod", "_metadata_offset", -4)                                          \
	X(NM_IMMUTABLE, "nmethod", "_immutable_data", 8)                                           \
	X(NM_SCOPES_BEGIN, "CompiledMethod", "_scopes_data_begin", 8)                              \
	X(NM_SCOPES_DATA, "nmethod", "_scopes_data_offset", -4)                                    \
	X(NM_SCOPES_PCS, "nmethod", "_scopes_pcs_offset", -4)                                      \
	X(NM_DEPENDENCIES, "nmethod", "_dependencies_offset", -4)                                  \
	X(BLOB_OOP_MAPS, "CodeBlob", "_oop_maps", 8)                                               \
	X(OOP_MAPS_N, "ImmutableOopMapSet|OopMapSet", "_count|_om_count", -4)                      \
	X(PC_OFFSET, "PcDesc", "_pc_offset", -4)                                                   \
	X(PC_SCOPE, "PcDesc", "_scope_decode_offset", -4)                                          \
	/* methods, their names and lines */                                                       \
	X(METHOD_CONST, "Method", "_constMethod", 8)                                               \
	X(CONST_POOL, "ConstMethod", "_constants", 8)                                              \
	X(CONST_CODE_SIZE, "ConstMethod", "_code_size", 2)                                         \
	X(CONST_NAME, "ConstMethod", "_name_index", 2)                                             \
	X(CONST_SIGNATURE, "ConstMethod", "_signature_index", 2)                                   \
	X(CONST_FLAGS, "ConstMethod", "_flags._flags|_flags", 2)                                   \
	X(POOL_LENGTH, "ConstantPool", "_length", -4)                                              \
	X(POOL_HOLDER, "ConstantPool", "_pool_holder", 8)                                          \
	X(POOL_SOURCE, "ConstantPool", "_source_file_name_index", 2)                               \
	X(CLASS_SOURCE, "InstanceKlass", "_source_file_name_index", 2) /* up to JDK 14 */          \
	X(CLASS_NAME, "Klass", "_name", 8)                                                         \
	X(CLASS_SUPER, "Klass", "_super", 8)                                                       \
	X(CLASS_CONSTANTS, "InstanceKlass", "_constants", 8)                                       \
	X(CLASS_FIELDS, "InstanceKlass", "_fields", 8)                                             \
	X(CLASS_N_FIELDS, "InstanceKlass", "_java_fields_count", 2)                                \
	X(CLASS_FIELD_STREAM, "InstanceKlass", "_fieldinfo_stream", 8)                             \
	X(SYMBOL_LENGTH, "Symbol", "_length", 2)                                                   \
	X(SYMBOL_LENGTH_REFS, "Symbol", "_length_and_refcount", 4)                                 \
	X(SYMBOL_BODY, "Symbol", "_body", 1)                                                       \
	/* threads */                                                                              \
	X(THREADS, "ThreadsSMRSupport", "_java_thread_list", 8)                                    \
	X(THREADS_LENGTH, "ThreadsList", "_length", 4)                                             \
	X(THREADS_ITEMS, "ThreadsList", "_threads", 8)                                             \
	X(FIRST_THREAD, "Threads", "_thread_list", 8) /* up to JDK 9 */                            \
	X(NEXT_THREAD, "JavaThread", "_next", 8)                                                   \
	X(THREAD_OS, "JavaThread|Thread", "_osthread", 8)                                          \
	X(OS_ID, "OSThread", "_thread_id", -4)                                                     \
	X(THREAD_OBJECT, "JavaThread", "_threadObj", 8)                                            \
	X(THREAD_ANCHOR, "JavaThread", "_anchor", 8)                                               \
	X(ANCHOR_SP, "JavaFrameAnchor", "_last_Java_sp", 8)                                        \
	X(ANCHOR_PC, "JavaFrameAnchor", "_last_Java_pc", 8)                                        \
	X(ANCHOR_FP, "JavaFrameAnchor", "_last_Java_fp", 8)                                        \
	X(THREAD_VFRAMES, "JavaThread", "_vframe_array_head", 8)                                   \
	X(THREAD_LAST_VFRAMES, "JavaThread", "_vframe_array_last", 8)                              \
	X(VFRAMES_ORIGINAL, "vframeArray", "_original", 8)                                         \
	X(VFRAMES_CALLER, "vframeArray", "_caller", 8)                                             \
	X(VFRAMES_N, "vframeArray", "_frames", -4)                                                 \
	X(VFRAME_METHOD, "vframeArrayElement", "_method", 8)                                       \
	X(VFRAME_BCI, "vframeArrayElement", "_bci", -4)                                            \
	X(THREAD_CONTINUATION, "JavaThread", "_cont_entry", 8)                                     \
	X(CONTINUATION_RETURN, "ContinuationEntry", "_return_pc", 8)                               \
	/* objects, for the names of threads */                                                    \
	X(VERSION, "Abstract_VM_Version", "_vm_major_version", -4) /* in 8, HotSpot's own: 25 */   \
	X(OBJECT_CLASS, "oopDesc", "_metadata._klass", 8)                                          \
	X(OOP_BASE, "CompressedOops|Universe", "_base|_narrow_oop._base", 8)                       \
	X(OOP_SHIFT, "CompressedOops|Universe", "_shift|_narrow_oop._shift", -4)                   \
	X(CLASS_BASE, "CompressedKlassPointers|Universe", "_base|_narrow_klass._base", 8)          \
	X(CLASS_SHIFT, "CompressedKlassPointers|Universe", "_shift|_narrow_klass._shift", -4)      \
	X(FLAGS, "JVMFlag|Flag", "flags", 8)                                                       \
	X(N_FLAGS, "JVMFlag|Flag", "numFlags", 8)                                                  \
	X(FLAG_NAME, "JVMFlag|Flag", "_name", 8)                                                   \
	X(FLAG_ADDRESS, "JVMFlag|Flag", "_addr", 8)                                                \
	X(FLAG_ORIGIN, "JVMFlag|Flag", "_flags", 4) /* and other bits */                           \
	/* of the generational ZGC's references: how far they are shifted, which bits are stale */ \
	X(Z_GLOBALS, "ZGlobalsForVMStructs", "_instance_p", 8)                                     \
	X(Z_SHIFT, "ZGlobalsForVMStructs", "_ZPointerLoadShift", 8)                                \
	X(Z_BAD, "ZGlobalsForVMStructs", "_ZPointerLoadBadMask", 8)                                \
	/* to tell what it is, and to try out what was found */                                    \
	X(RELEASE, "Abstract_VM_Version", "_s_vm_release", 8)                                      \
	X(CLASS_METHODS, "InstanceKlass", "_methods", 8)                                           \
	X(THREAD_CLASS, "vmClasses|SystemDictionary",                                              \
	  "_klasses[static_cast<int>(vmClassID::Thread_klass_knum)]|"                              \
	  "_well_known_klasses[SystemDictionary::Thread_klass_knum]", 8)                           \
	/* who waits for whom */                                                                   \
	X(THREAD_PENDING, "JavaThread|Thread", "_current_pending_monitor", 8)                      \
	X(THREAD_OWNER_ID, "JavaThread", "_monitor_owner_id", 8) /* from JDK 24 on */              \
	X(THREAD_LOCKS, "JavaThread", "_lock_stack", 8) /* from 21 on */                           \
	X(THREAD_STACK, "JavaThread|Thread", "_stack_base", 8)                                     \
	X(THREAD_STACK_SIZE, "JavaThread|Thread", "_stack_size", 8)                                \
	X(MONITOR_OWNER, "ObjectMonitor", "_owner", 8)                                             \
	X(MONITOR_OBJECT, "ObjectMonitor", "_object", 8)                                           \
	X(MONITOR_LOCKER, "ObjectMonitor", "_stack_locker", 8) /* from 24 on */                    \
	X(LOCKS_TOP, "LockStack", "_top", 4)                                                       \
	X(LOCKS_BASE, "LockStack", "_base[0]", 8)                                                  \
	X(MIRROR_CLASS, "java_lang_Class", "_klass_offset", -4)

/* X(NAME, types): its size in bytes, 0 when it is missing. */
#define SF_HOTSPOT_SIZES(X)                                                                        \
	X(BLOCK, "HeapBlock")                                                                      \
	X(CODELET, "InterpreterCodelet")                                                           \
	X(CONST_METHOD, "ConstMethod")                                                             \
	X(POOL, "ConstantPool")                                                                    \
	X(PC_DESC, "PcDesc")                                                                       \
	X(VFRAMES, "vframeArray")                                                                  \
	X(VFRAME, "vframeArrayElement")                                                            \
	X(CONTINUATION, "ContinuationEntry")                                                       \
	X(FLAG, "JVMFlag|Flag")

/* X(NAME, constants, default when none is there) */
#define SF_HOTSPOT_NUMBERS(X)                                                                      \
	X(HAS_LINES,                                                                               \
	  "ConstMethodFlags::_misc_has_linenumber_table|ConstMethod::_has_linenumber_table", 1)    \
	X(HEADER_CLASS_SHIFT, "markWord::klass_shift", 0)

enum sf_hotspot_field_name {
#define X(name, types, fields, width) SF_HS_##name,
	SF_HOTSPOT_FIELDS(X)
#undef X
	SF_HS_N_FIELDS
};

enum sf_hotspot_size_name {
#define X(name, type) SF_HS_SIZE_##name,
	SF_HOTSPOT_SIZES(X)
#undef X
	SF_HS_N_SIZES
};

enum sf_hotspot_number_name {
#define X(name, constants, otherwise) SF_HS_NUMBER_##name,
	SF_HOTSPOT_NUMBERS(X)
#undef X
	SF_HS_N_NUMBERS
};

struct sf_hotspot_field {
	uint64_t at;       /* offset in its struct; of a static one, its address */
	uint8_t  width;    /* bytes; 0: this virtual machine does not have it */
	bool     is_signed, is_static;
};

#define SF_HOTSPOT_HEAPS 16
#define SF_HOTSPOT_ENTRIES 64
#define SF_HOTSPOT_MAX_HEADER 400 /* 345 in JDK 21: of a block, and of the CodeBlob behind it */
#define SF_HOTSPOT_MAX_BLOCK 32   /* 16 in JDK 21 */
#define SF_HOTSPOT_MAX_BLOB (SF_HOTSPOT_MAX_HEADER - SF_HOTSPOT_MAX_BLOCK)
#define SF_HOTSPOT_MAX_CONST 96   /* of a ConstMethod, before the bytecodes */

struct sf_hotspot_heap {
	uint64_t low, high;  /* reserved: what is in use grows */
	uint64_t segmap;
	uint32_t log2_segment;
	uint64_t memory_space, segmap_space; /* the VirtualSpaces that say how far it has grown */
	/*
	 * In the virtual machine's own process: the ends of the code and of the segment map that may be loaded directly.
	 * Direct loads are safe because HotSpot never unmaps memory that it has added to a code heap, and may run code
	 * there at any time (docs/design.md, section 14). For any other process: 0. Both ends grow while other threads
	 * read them.
	 */
	_Atomic uint64_t loads_to, segmap_loads_to;
};

/* Code with which the interpreter enters a method; the method's frame is incomplete there. */
struct sf_hotspot_entry {
	uint64_t start, end;
	uint64_t frame;      /* of "push fp; mov fp, sp"; `end` when it makes none */
};

/*
 * All fields, sizes and numbers are within their limits (src/runtime/hotspot/limits.h); code that uses
 * them need not check them again.
 */
struct sf_hotspot {
	struct sf_runtime runtime;       /* first: what the walker sees */
	struct sf_region code;           /* all code that it makes, as one region */
	uint32_t n_heaps, n_entries;
	struct sf_hotspot_heap heaps[SF_HOTSPOT_HEAPS];
	struct sf_hotspot_entry entries[SF_HOTSPOT_ENTRIES];
	uint64_t call_stub_return;
	uint64_t interpreter_start, interpreter_end;
	uint32_t header_size;            /* bytes that hold what is read of a block and its CodeBlob: more than
					  * sizes[SF_HS_SIZE_BLOCK], at most SF_HOTSPOT_MAX_HEADER */
	uint8_t  version;                /* of the JDK; 0: unknown */
	bool     describes_all;          /* DebugNonSafepoints was on before anything was compiled */
	struct sf_hotspot_field fields[SF_HS_N_FIELDS];
	uint32_t sizes[SF_HS_N_SIZES];
	int64_t  numbers[SF_HS_N_NUMBERS];
};

/* The classes of pieces of code. */
enum sf_blob_class {
	SF_BLOB_COMPILED,     /* Java, by C1 or C2 */
	SF_BLOB_WRAPPER,      /* what calls a native method */
	SF_BLOB_INTERPRETER,
	SF_BLOB_VTABLE,
	SF_BLOB_ADAPTER,
	SF_BLOB_STUBS,        /* a collection of hand-written routines without a frame size */
	SF_BLOB_CONTINUATIONS,/* the ones of these that start and resume virtual threads */
	SF_BLOB_DEOPT,        /* what replaces compiled frames by interpreted ones */
	SF_BLOB_RUNTIME,      /* calls into the virtual machine; any other */
};

#define SF_BLOB_NAME 48 /* bytes of a name that tell all classes apart */

struct sf_blob {
	uint64_t address, code_start, code_end;
	uint64_t entry;            /* compiled code and wrappers: the verified entry, else 0 */
	uint64_t loop_entry;       /* where the interpreter goes on in it, in a loop; 0: nowhere */
	uint64_t deopt, deopt_mh;  /* the same: handlers, 0 when unknown */
	uint64_t method;
	int64_t  orig_pc;          /* offset from sp of the pc of a deoptimized frame; 0: unknown */
	uint64_t name;             /* address of its name, from which its class follows */
	uint32_t compile_id;
	int32_t  frame_size;       /* in words, with return address; <= 0: has none */
	int32_t  frame_complete;   /* offset from code_start; -1: never */
	uint8_t  level;
	uint8_t  class;            /* enum sf_blob_class */
	uint16_t reserved;         /* 0 */
};

/*
 * The field of the struct at `base` (of a static one, itself); false when it is missing or
 * unreadable.
 */
bool sf_hotspot_get(const struct sf_hotspot *hotspot, const struct sf_reader *memory,
		    enum sf_hotspot_field_name field, uint64_t base, uint64_t *ret);

/* The value of a field, by 8 bytes from where it is: as many as it is wide are its own. */
static inline uint64_t sf_hotspot_widen(const struct sf_hotspot_field *field, const uint8_t *bytes)
{
	const unsigned unused = 64 - 8u * field->width;
	uint64_t value;

	memcpy(&value, bytes, sizeof(value));
	value <<= unused;
	return field->is_signed ? (uint64_t)((int64_t)value >> unused) : value >> unused;
}

/* A field of the struct of which these bytes were read; `otherwise` when it is missing, or not among them. */
static inline uint64_t sf_hotspot_pick(const struct sf_hotspot *hotspot,
				       enum sf_hotspot_field_name name, const uint8_t *bytes,
				       uint32_t size, uint64_t otherwise)
{
	const struct sf_hotspot_field *field = &hotspot->fields[name];

	return field->width && size >= sizeof(uint64_t) && field->at <= size - sizeof(uint64_t) ?
		sf_hotspot_widen(field, bytes + field->at) : otherwise;
}

static inline bool sf_hotspot_has(const struct sf_hotspot *hotspot,
				  enum sf_hotspot_field_name field)
{
	return hotspot->fields[field].width != 0;
}

static inline bool sf_hotspot_holds(const struct sf_hotspot *hotspot, uint64_t pc)
{
	return pc >= hotspot->code.start && pc < hotspot->code.end;
}

/* Whether these bytes can be loaded: they are in what a code heap has (struct sf_hotspot_heap). Signal-safe. */
static inline bool sf_hotspot_loads(const struct sf_hotspot *hotspot, uint64_t addr, uint64_t size)
{
	for (uint32_t i = 0; i < hotspot->n_heaps && i < SF_HOTSPOT_HEAPS; i++) {
		const struct sf_hotspot_heap *heap = &hotspot->heaps[i];
		const uint64_t end = atomic_load_explicit(&heap->loads_to, memory_order_relaxed);
		const uint64_t map_end = atomic_load_explicit(&heap->segmap_loads_to, memory_order_relaxed);

		if ((addr >= heap->low && addr < end && size <= end - addr) ||
		    (addr >= heap->segmap && addr < map_end && size <= map_end - addr))
			return true;
	}
	return false;
}

/* Copies them, if they can be. Signal-safe. */
static inline bool sf_hotspot_copy(const struct sf_hotspot *hotspot, void *ret, uint64_t addr,
				   uint64_t size)
{
	if (!sf_hotspot_loads(hotspot, addr, size))
		return false;
	memcpy(ret, (const void *)(uintptr_t)addr, size);
	return true;
}

/* The piece of code that holds pc; false when there is none. Signal-safe. */
bool sf_hotspot_blob(const struct sf_hotspot *hotspot, const struct sf_reader *memory, uint64_t pc,
		     struct sf_blob *ret);
/* Only where it begins, its address; 0: there is none. */
uint64_t sf_hotspot_blob_start(const struct sf_hotspot *hotspot, const struct sf_reader *memory,
			       uint64_t pc);
/*
 * Which class a name tells (enum sf_blob_class), by where the name is: they are constants of the machine's (HotSpot:
 * code/codeBlob.cpp, code/nmethod.cpp). All zeroes: none is known. Shared by all threads, without a lock.
 */
#define SF_HOTSPOT_NAMES 64
#define SF_HOTSPOT_NAME_SHIFT 8  /* the address, the class + 1 below it */

struct sf_hotspot_names {
	_Atomic uint64_t known[SF_HOTSPOT_NAMES];
};

/*
 * As sf_hotspot_blob where it is known where the piece, if it is still there, begins. A name that is known is not read
 * again. `names` NULL: none is.
 */
bool sf_hotspot_blob_at(const struct sf_hotspot *hotspot, const struct sf_reader *memory,
			uint64_t address, uint64_t pc, struct sf_hotspot_names *names,
			struct sf_blob *ret);

/*
 * The start of the header of the piece of code at `address`. Only hotspot->header_size bytes from
 * there are read.
 */
static inline uint64_t sf_hotspot_header(const struct sf_hotspot *hotspot, uint64_t address)
{
	return address - hotspot->sizes[SF_HS_SIZE_BLOCK];
}

/* Decodes the header of a piece of this class; false: the bytes are not such a header. Signal-safe. */
bool sf_hotspot_blob_from(const struct sf_hotspot *hotspot, uint64_t address, uint8_t class,
			  const uint8_t *header, struct sf_blob *ret);

/* Whether a Method, its ConstMethod or a ConstantPool can be there. */
static inline bool sf_hotspot_is_metadata(uint64_t address)
{
	return address >= 4096 && address % 8 == 0;
}

/* The fields of a Method that a walk needs. */
struct sf_method {
	uint64_t address, constant; /* of the Method and its ConstMethod */
	uint64_t pool, code_size;
};

#define SF_METHOD_WORDS (sizeof(struct sf_method) / sizeof(uint64_t))

/* Reads the Method at `address`; false: the memory there does not look like a Method. Signal-safe. */
bool sf_hotspot_method(const struct sf_hotspot *hotspot, const struct sf_reader *memory,
		       uint64_t address, struct sf_method *ret);
/* The same from the address and the bytes of its ConstMethod. */
bool sf_hotspot_method_from(const struct sf_hotspot *hotspot, uint64_t address, uint64_t constant,
			    const uint8_t *bytes, struct sf_method *ret);

/* The index of the bytecode at `bcp`; -1: `bcp` is outside the method's bytecodes. Signal-safe. */
int32_t sf_hotspot_bci(const struct sf_hotspot *hotspot, const struct sf_method *method,
		       uint64_t bcp);

/* An id that changes when another Method replaces this one at its address, after its class is unloaded. */
static inline uint32_t sf_method_id(const struct sf_method *method)
{
	return (uint32_t)(method->constant >> 3);
}

/*
 * Whether `thread` is (still) the JavaThread of this thread, as its own pid namespace numbers it.
 * Signal-safe.
 */
bool sf_hotspot_is_thread(const struct sf_hotspot *hotspot, const struct sf_reader *memory,
			  uint64_t thread, int32_t tid);

extern const struct sf_runtime_ops sf_hotspot_ops;

/* The HotSpot of a process, or NULL. Signal-safe. */
const struct sf_hotspot *sf_hotspot_of(const struct sf_code_map *map);

#endif
