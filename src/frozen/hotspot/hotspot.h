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

#include "frozen/hotspot/fields.h"
#include "frozen/unwind/code_map.h"
#include "frozen/reader.h"

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
	SF_BLOB_VTABLE,       /* code without a frame that jumps on */
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
