/* SPDX-License-Identifier: Apache-2.0 */
/* A trace: the result of a walk, which is a list of frames and the reason for which the walk ended. */
#ifndef SF_FROZEN_TRACE_H
#define SF_FROZEN_TRACE_H

#include <stdbool.h>
#include <stdint.h>

#include "frozen/ends.h"

#define SF_DEFAULT_DEPTH 1024 /* frames in one trace */
#define SF_MAX_DEPTH 16384

/* How a frame was found from its callee's frame. Stored in recordings: add new ones at the end. */
#define SF_VIAS(X)                                                                                 \
	X(LEAF, "leaf", "where the thread stands")                                                 \
	X(ROWS, "rows", "by the file's unwind rules")                                              \
	X(FRAME_POINTER, "frame-pointer", "by the frame pointer, no rule covers the callee")       \
	X(SIGNAL, "signal", "interrupted by a signal")                                             \
	X(GUESS, "guess", "by a rule of thumb for code without unwind data")                       \
	X(INFERRED, "inferred", "by the call that leads here, where a register was unknown")       \
	X(RUNTIME, "runtime", "by the rules of the virtual machine that made the callee")          \
	X(ANCHOR, "anchor", "from the virtual machine's note of its last frame; native frames below " \
	  "it may be missing")                                                                     \
	X(AGCT, "agct", "returned by the runtime's own function for stacks")                       \
	X(KERNEL, "kernel", "the kernel's own call chain says so")                                 \
	X(CODE, "code", "by the callee's instructions, which no rule covers; a call stands before it") \
	X(AWAITS, "awaits", "it awaits the callee, as objects in memory say; it is not on the stack") \
	X(HOOKS, "hooks", "noted by hooks that the runtime calls where methods are entered and left") \
	X(CHAIN, "chain", "by the frame pointers, which the kernel has followed when the sample was taken") \
	X(HANDLER, "handler", "it catches what the callee throws, by the callee's instructions")

enum sf_via {
#define X(name, word, text) SF_VIA_##name,
	SF_VIAS(X)
#undef X
	SF_N_VIAS
};

const char *sf_via_word(unsigned via); /* "unknown" outside the list. Signal-safe. */

/*
 * The kind of code of a frame. Stored in recordings: add new kinds at the end.
 */
#define SF_KINDS(X)                                                                                \
	X(NATIVE, "native", "machine code")                                                        \
	X(WAIT, "wait", "what a blocked thread waits for")                                         \
	X(CUT, "cut", "stands for frames that are missing")                                        \
	X(INTERPRETED, "interpreted", "managed code, in the interpreter")                          \
	SF_RUNTIME_KINDS(X)                                                                        \
	X(NATIVE_METHOD, "native-method", "managed code, a native method")                         \
	X(STUB, "stub", "code that a runtime made for itself")                                     \
	X(HEAP, "heap", "stands for frames of a virtual thread that are in the heap")              \
	X(MANAGED, SF_MANAGED_WORD, "managed code: a function, whose frames may be of several kinds") \
	X(KERNEL, "kernel", "code of the kernel, of its modules and of BPF programs")                \
	SF_LATER_RUNTIME_KINDS(X)

enum sf_frame_kind {
#define X(name, word, text) SF_KIND_##name,
	SF_KINDS(X)
#undef X
	SF_N_KINDS
};

const char *sf_kind_word(unsigned kind); /* "unknown" outside the list. Signal-safe. */

/* Whether a virtual machine made the code: its names are not in any file. */
static inline bool sf_kind_is_managed(unsigned kind)
{
	return kind >= SF_KIND_INTERPRETED && kind < SF_N_KINDS && kind != SF_KIND_KERNEL;
}

/* Whether a frame of this kind is identified by its Method and bytecode, not by its address. */
static inline bool sf_kind_is_by_method(unsigned kind)
{
	return kind == SF_KIND_INTERPRETED || kind == SF_KIND_MANAGED;
}

/* Whether this is the kind of a function whose frames may be of several kinds. */
static inline bool sf_kind_has_kinds(unsigned kind)
{
	return kind == SF_KIND_MANAGED || kind == SF_KIND_LATER_MANAGED;
}

/* The kind of the function of a frame of this kind. */
static inline uint8_t sf_kind_of_function(uint8_t kind)
{
	if (kind >= SF_KIND_JITTED && kind <= SF_KIND_PRECOMPILED)
		return SF_KIND_LATER_MANAGED;
	return kind >= SF_KIND_INTERPRETED && kind <= SF_KIND_NATIVE_METHOD ? SF_KIND_MANAGED : kind;
}

enum sf_frame_flags {
	/* pc is the current instruction (a leaf, an interrupted frame, or the trampoline that a signal
	 * handler returns to), not a return address: look names up at pc; otherwise at pc - 1 */
	SF_FRAME_EXACT = 1,
};

struct sf_frame {
	uint64_t pc;
	uint64_t sp;      /* the stack pointer in this frame */
	uint8_t  via;     /* enum sf_via */
	uint8_t  flags;   /* enum sf_frame_flags */
	uint8_t  kind;    /* enum sf_frame_kind; never WAIT or CUT */
	uint8_t  runtime; /* slot + 1 of the runtime whose frame it is; 0: native */
	uint32_t image;   /* of the region that holds pc, 0 if none */
	uint64_t address; /* pc in the file (pc - bias); pc itself when image is 0 */

	/* For managed frames. The token identifies the code by an address of the virtual machine (interpreted:
	 * the Method; compiled, stubs: the CodeBlob). `id` differs when the token was used again for other
	 * code (compiled: the compile id; interpreted: sf_method_id()). */
	uint64_t token;
	uint32_t id;
	int32_t  bci;     /* interpreted: index of the bytecode, -1 unknown */
};

/* Caller's memory: `frames` has room for `capacity`. Innermost frame first. */
struct sf_trace {
	struct sf_frame *frames;
	uint32_t capacity;
	uint32_t n_frames;
	enum sf_end end;
	bool by_zero;     /* the end is a return address of 0, and no rule says that it is the end */
	bool lacks_chain; /* it ended where sf_still.chain, which the still does not have, would lead on */
	bool below_sp;    /* it needs what lies below the stack pointer, in the red zone, which a copy may not have */
	bool off_map;     /* it came to an address in no region of the code map, also where it went on from there */
};

#endif
